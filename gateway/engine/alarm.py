"""The alarm clock and the daily chores, on APScheduler; it holds no truth."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from apscheduler.schedulers.asyncio import AsyncIOScheduler

_ALARM = "due-jobs"
_FIRST_CHORE = timedelta(minutes=1)


class AlarmClock:
    """One timer at the earliest slot, and chores at their intervals. Nothing is stored."""

    def __init__(self) -> None:
        # A missed moment is rung as soon as possible: the default drops it after one second.
        defaults = {"coalesce": True, "misfire_grace_time": None, "max_instances": 1}
        self._scheduler = AsyncIOScheduler(timezone="UTC", job_defaults=defaults)
        self._moment: datetime | None = None

    def start(self) -> None:
        """Begin to tick; needs the running loop."""
        self._scheduler.start()

    def set(self, moment: datetime | None, ring: Callable[[], None]) -> None:
        """Replace the alarm's moment; None = silence."""
        if moment is None:
            if self._scheduler.get_job(_ALARM) is not None:
                self._scheduler.remove_job(_ALARM)
            self._moment = None
        elif moment != self._moment or self._scheduler.get_job(_ALARM) is None:
            self._moment = moment
            self._scheduler.add_job(
                _ring, "date", args=(ring,), run_date=moment, id=_ALARM, replace_existing=True
            )

    def every(self, period: timedelta, chore: Callable[[], Awaitable[None]], name: str) -> None:
        """Do a chore a minute from now, and then at each period."""
        self._scheduler.add_job(
            chore,
            "interval",
            seconds=period.total_seconds(),
            next_run_time=datetime.now(UTC) + _FIRST_CHORE,
            id=name,
            replace_existing=True,
        )

    @property
    def chores(self) -> list[str]:
        """The names of the chores that it calls for."""
        return sorted(job.id for job in self._scheduler.get_jobs() if job.id != _ALARM)

    def stop(self) -> None:
        """Stop ticking; chores in progress are not waited for."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)


async def _ring(ring: Callable[[], None]) -> None:
    """A coroutine, since APScheduler calls plain functions in another thread."""
    ring()
