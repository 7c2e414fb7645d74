"""The errors this program raises, drawn as one tree.

GatewayError
|-- SettingsError            settings or usage are wrong            exit 2
|-- StoreError               the store could not do what was asked
|   |-- NewerDatabaseError   written by a newer program             exit 3
|   |-- CorruptDatabaseError damaged, left where it is              exit 6
|   |-- StoreBusyError       locked, full or read-only: try later
|   `-- StaleStateError      the row no longer stands where we read it
|-- DataDirectoryInUseError  another gateway holds it               exit 4
|-- NoChannelError           no channel could start                 exit 5
|-- ChannelError             a platform refused or could not be reached
|   `-- ChannelSetupError    the channel cannot start until mended
|-- HostError                a model host failed
|   `-- HostNotReadyError    a session did not start in time
|-- BadScheduleError         a schedule that cannot be, with the reason
`-- IllegalTransitionError   a state machine was asked for a move it does not draw
"""

from typing import ClassVar


class GatewayError(Exception):
    """Base of all our errors; `str()` is a plain sentence that a person may read."""

    exit_code: ClassVar[int] = 1


class SettingsError(GatewayError):
    """One or more settings are wrong; `problems` has one sentence each, with its fix."""

    exit_code = 2

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class StoreError(GatewayError):
    """The store could not do what was asked; nothing of the transition remains."""


class NewerDatabaseError(StoreError):
    """The database was written by a newer program; it is left untouched."""

    exit_code = 3


class CorruptDatabaseError(StoreError):
    """The database is damaged; it is left where it is."""

    exit_code = 6


class StoreBusyError(StoreError):
    """The commit failed for a passing reason (locked, full, read-only): it may be repeated."""


class StaleStateError(StoreError):
    """The row no longer stands where it was read: somebody else moved it first."""


class DataDirectoryInUseError(GatewayError):
    """Another gateway holds the data directory."""

    exit_code = 4


class NoChannelError(GatewayError):
    """No channel could start."""

    exit_code = 5


class ChannelError(GatewayError):
    """A platform refused something or could not be reached."""


class ChannelSetupError(ChannelError):
    """The channel cannot start until its operator mends something; the text says what."""


class HostError(GatewayError):
    """A model host failed."""


class HostNotReadyError(HostError):
    """A session did not answer in time after its start."""


class IllegalTransitionError(GatewayError):
    """A state machine was asked for a move that its table does not draw."""


class BadScheduleError(GatewayError):
    """A schedule that cannot be; `str()` names what is wrong with it."""
