"""When a silent chat gets a check-in: its quiet hours and its daily cap."""

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from gateway.domain.wallclock import instants

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatRules:
    """Check-ins come after `interval` of silence, at most `daily_cap` a local day of a chat.

    Never within `quiet_hours` (start inclusive, end exclusive, over midnight if it ends before it
    starts, equal ends = never quiet). `timezone` is that of the chats that have none of their own.
    """

    interval: timedelta
    quiet_hours: tuple[time, time]
    daily_cap: int
    timezone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """A chat whose silence has lasted long enough. `count` check-ins were made on `day`."""

    zone: ZoneInfo
    is_busy: bool
    day: date | None
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckIn:
    """It is made now, the `count`-th of the local `day`."""

    day: date
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PutOff:
    """It is not made now; look again at `until`."""

    until: datetime


def decide(rules: HeartbeatRules, silence: Silence, *, now: datetime) -> CheckIn | PutOff:
    """Whether a check-in that is due is made, and if not, when to look again."""
    until = quiet_until(rules.quiet_hours, silence.zone, now=now)
    if until is not None:
        return PutOff(until=until)
    if silence.is_busy:
        return PutOff(until=now + rules.interval)
    today = now.astimezone(silence.zone).date()
    count = silence.count if silence.day == today else 0
    if count >= rules.daily_cap:
        return PutOff(until=_next(time(0), silence.zone, now=now))
    return CheckIn(day=today, count=count + 1)


def quiet_until(
    quiet_hours: tuple[time, time], zone: ZoneInfo, *, now: datetime
) -> datetime | None:
    """When the quiet hours that `now` lies in end; None = it is not quiet."""
    start, end = quiet_hours
    clock = now.astimezone(zone).time()
    is_quiet = start <= clock < end if start <= end else clock >= start or clock < end
    return _next(end, zone, now=now) if is_quiet else None


def _next(clock: time, zone: ZoneInfo, *, now: datetime) -> datetime:
    """The next instant at which the clock in the zone shows that time."""
    today = now.astimezone(zone).date()
    found = (one.at for day in (today, today + _DAY) for one in instants(day, clock, zone))
    return next((at for at in found if at > now), now + _DAY)
