"""A year of reminders on a clock that is moved by hand: each slot has one turn, whatever happens.

What is expected comes from calendar arithmetic of its own, date by date.
"""

import itertools
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import TypeVar
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from gateway.domain.delivery import DeliveryId, DeliveryState
from gateway.domain.job import JobAction, JobId, JobState, MissedWindow, NewJob
from gateway.domain.missed import MOST_RECORDED
from gateway.domain.schedule import (
    At,
    Cron,
    Daily,
    Every,
    Schedule,
    Weekly,
    from_millis,
    next_slot,
    parse_cron,
)
from gateway.store.chats import ensure_chat
from gateway.store.database import Transaction, open_engine
from gateway.store.firing import earliest_slot, fire_due
from gateway.store.jobs import Created, create_job
from gateway.store.missed import realign
from gateway.store.schema import deliveries, jobs, metadata, turns
from gateway.store.slots import settle_jobs
from tests.factories import CHAT, SERVED, fire_rules

T = TypeVar("T")

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
YEAR = timedelta(days=365)
END = BEGIN + YEAR
JOBS = 10
EXAMPLES = 3
PARTS = 8
MOST_SLOTS = 23

# Each zone with days shortly before its clocks are changed.
ZONES = {
    "Europe/Berlin": [(3, 25), (10, 20)],
    "America/New_York": [(3, 5), (10, 29)],
    "Australia/Lord_Howe": [(4, 2), (10, 1)],
    "Africa/Casablanca": [(2, 12), (3, 19)],
    "Asia/Kolkata": [(1, 2)],
    "UTC": [(1, 2)],
}
ODD_DAY = timedelta(hours=29, minutes=17)
LAGS = [timedelta(0)] * 6 + [
    timedelta(milliseconds=1),
    timedelta(seconds=20),
    timedelta(minutes=11),
    timedelta(hours=3),
    timedelta(days=2),
    timedelta(days=19),
]


@dataclass(slots=True, kw_only=True)
class Plan:
    """A job as it is asked for, the slots it has by the calendar, and those that must have come."""

    schedule: Schedule
    zone: str
    missed: MissedWindow
    slots: list[datetime] = field(repr=False)
    id: JobId | None = None
    runs: int = 0
    must: dict[datetime, datetime | None] = field(default_factory=dict)
    """Each slot that has a turn; with the moment of the look if it was the latest of that look."""

    @property
    def max_runs(self) -> int | None:
        return None if isinstance(self.schedule, At) else self.schedule.max_runs

    def look(self, now: datetime) -> None:
        """What a look at `now` has to do with it."""
        due = [slot for slot in self.slots if slot <= now]
        self.slots = self.slots[len(due) :]
        if not due:
            return
        self.must |= dict.fromkeys(due[-1 - MOST_RECORDED : -1])
        self.must[due[-1]] = now
        self.runs += 1
        if self.runs == self.max_runs:
            self.slots = []


# ---- the calendar ----------------------------------------------------------------------------


def shown_at(day: date, clock: time, zone: ZoneInfo) -> datetime:
    """The first moment of a day at which its clock has reached `clock`."""
    moment = datetime.combine(day, clock, zone).astimezone(UTC)
    if moment.astimezone(zone).time() == clock:
        return moment
    # Jumped over: the first whole minute whose local time is past it.
    moment -= timedelta(hours=3)
    while moment.astimezone(zone).replace(tzinfo=None) < datetime.combine(day, clock):
        moment += timedelta(minutes=1)
    return moment


def by_date(
    is_on: Callable[[date], bool], clocks: list[time], after: datetime, zone: ZoneInfo
) -> Iterator[datetime]:
    last = after
    first_day = after.astimezone(zone).date()
    for number in itertools.count():
        day = first_day + timedelta(days=number)
        for clock in clocks if is_on(day) else []:
            moment = shown_at(day, clock, zone)
            if moment > last:
                last = moment
                yield moment


Asked = tuple[Schedule, Iterator[datetime]]


@st.composite
def clocks(draw: st.DrawFn) -> time:
    # Often where clocks are changed.
    hour = draw(st.one_of(st.integers(1, 2), st.integers(0, 23)))
    return time(hour, draw(st.sampled_from([0, 5, 30, 59])))


def every(draw: st.DrawFn, after: datetime, zone: ZoneInfo) -> Asked:
    minutes = draw(st.sampled_from([1, 7, 60, 1440, 10_080, 43_201, 131_071]))
    period = timedelta(minutes=minutes)
    anchor = after - draw(st.integers(0, 400)) * timedelta(hours=7)
    first = anchor + ((after - anchor) // period + 1) * period
    return Every(period=period, anchor=anchor), (first + n * period for n in itertools.count())


def daily(draw: st.DrawFn, after: datetime, zone: ZoneInfo) -> Asked:
    clock, stride = draw(clocks()), draw(st.sampled_from([1, 1, 2, 9]))
    since = after.astimezone(zone).date()
    slots = by_date(lambda day: (day - since).days % stride == 0, [clock], after, zone)
    return Daily(time=clock, every=stride, since=since), slots


def weekly(draw: st.DrawFn, after: datetime, zone: ZoneInfo) -> Asked:
    days = draw(st.frozensets(st.integers(0, 6), min_size=1))
    clock, stride = draw(clocks()), draw(st.sampled_from([1, 1, 2]))
    since = after.astimezone(zone).date()
    monday = since - timedelta(days=since.weekday())

    def is_on(day: date) -> bool:
        return day.weekday() in days and (day - monday).days // 7 % stride == 0

    schedule = Weekly(days=days, time=clock, every=stride, since=since)
    return schedule, by_date(is_on, [clock], after, zone)


def cron(draw: st.DrawFn, after: datetime, zone: ZoneInfo) -> Asked:
    hours = sorted(draw(st.sets(st.integers(0, 23), min_size=1, max_size=3)))
    minute = draw(st.sampled_from([0, 1, 30, 59]))
    of_month = draw(st.one_of(st.none(), st.sampled_from([1, 13, 28, 29, 31])))
    of_week = draw(st.one_of(st.none(), st.integers(0, 7)))

    def is_on(day: date) -> bool:
        named = []
        if of_month is not None:
            named.append(day.day == of_month)
        if of_week is not None:
            named.append(day.isoweekday() % 7 == of_week % 7)
        return any(named) or not named

    fields = ("*" if one is None else str(one) for one in (of_month, of_week))
    days, weekdays = fields
    text = f"{minute} {','.join(map(str, hours))} {days} * {weekdays}"
    slots = by_date(is_on, [time(hour, minute) for hour in hours], after, zone)
    return parse_cron(text), slots


def once(draw: st.DrawFn, after: datetime, zone: ZoneInfo) -> Asked:
    at = after + draw(st.integers(1, 10_000)) * timedelta(minutes=13)
    return At(at=at), iter([at])


def ending(schedule: Schedule, slots: list[datetime], max_runs: int | None) -> Schedule:
    """The same with its end, where it has one."""
    until = slots[MOST_SLOTS - 1] if len(slots) > MOST_SLOTS else None
    match schedule:
        case At():
            return schedule
        case Every():
            return Every(
                period=schedule.period, anchor=schedule.anchor, until=until, max_runs=max_runs
            )
        case Daily():
            return Daily(
                time=schedule.time,
                every=schedule.every,
                since=schedule.since,
                until=until,
                max_runs=max_runs,
            )
        case Weekly():
            return Weekly(
                days=schedule.days,
                time=schedule.time,
                every=schedule.every,
                since=schedule.since,
                until=until,
                max_runs=max_runs,
            )
        case Cron():
            return parse_cron(schedule.expression, until=until, max_runs=max_runs)


@st.composite
def plans(draw: st.DrawFn) -> tuple[datetime, Plan]:
    """When a job is asked for, and what must come of it."""
    zone = draw(st.sampled_from(list(ZONES)))
    any_day = st.integers(0, 300).map(lambda number: BEGIN + number * ODD_DAY)
    month, day = draw(st.sampled_from(ZONES[zone]))
    asked_at = draw(st.one_of(any_day, st.just(datetime(2026, month, day, 9, 41, tzinfo=UTC))))
    kind = draw(st.sampled_from([every, daily, daily, weekly, weekly, cron, cron, once]))
    schedule, calendar = kind(draw, asked_at, ZoneInfo(zone))
    slots = list(
        itertools.islice(
            itertools.takewhile(lambda slot: slot <= END + LAGS[-1], calendar), MOST_SLOTS + 1
        )
    )
    missed = draw(st.sampled_from([MissedWindow.CATCH_UP_ONE] * 3 + [MissedWindow.SKIP]))
    runs = draw(st.one_of(st.none(), st.none(), st.integers(1, 9)))
    if missed is MissedWindow.SKIP:
        runs = None
    schedule = ending(schedule, slots, runs)
    return asked_at, Plan(schedule=schedule, zone=zone, missed=missed, slots=slots[:MOST_SLOTS])


# ---- the year --------------------------------------------------------------------------------


class Gateway:
    """The store, as it is opened at each start."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._numbers = itertools.count()
        self._open()
        self.write(lambda tx: metadata.create_all(tx.connection))
        self.write(lambda tx: ensure_chat(tx, CHAT, is_group=False, now=BEGIN))

    def _open(self) -> None:
        self._engine = open_engine(self._path, is_read_only=False)
        self._connection = self._engine.connect()
        self._connection.begin()

    def write(self, transition: Callable[[Transaction], T]) -> T:
        return transition(Transaction(self._connection))

    def close(self) -> None:
        transaction = self._connection.get_transaction()
        assert transaction is not None
        transaction.commit()
        self._connection.close()
        self._engine.dispose()

    def restart(self, now: datetime) -> None:
        """Start anew, with each series put back to the slot that it served last."""
        self.close()
        self._open()
        is_on = (jobs.c.state == JobState.ACTIVE) & jobs.c.last_slot_at.is_not(None)
        put_back = jobs.update().where(is_on, jobs.c.next_slot_at.is_not(None))
        again = put_back.values(next_slot_at=jobs.c.last_slot_at)
        self.write(lambda tx: tx.connection.execute(again))
        self.write(lambda tx: realign(tx, SERVED, now=now))

    def create(self, plan: Plan, now: datetime) -> None:
        slot = next_slot(plan.schedule, after=now, zone=ZoneInfo(plan.zone))
        assert slot is not None
        new = NewJob(
            chat=CHAT,
            action=JobAction.MESSAGE,
            text=f"n{next(self._numbers)}",
            schedule=plan.schedule,
            timezone=plan.zone,
            next_slot_at=slot,
            missed=plan.missed,
        )
        created = self.write(lambda tx: create_job(tx, new, now=now))
        assert isinstance(created, Created)
        plan.id = created.job.id

    def look(self, now: datetime) -> None:
        while self.write(lambda tx: fire_due(tx, fire_rules(), now=now)):
            pass
        self.write(lambda tx: _send_all(tx, now))

    def next(self, after: datetime) -> datetime | None:
        return self.write(lambda tx: earliest_slot(tx.connection, SERVED, after=after))


def _send_all(tx: Transaction, now: datetime) -> None:
    """Everything that waits arrives."""
    is_pending = deliveries.c.state == DeliveryState.PENDING
    for delivery in list(
        tx.connection.execute(select(deliveries.c.id).where(is_pending)).scalars()
    ):
        row = deliveries.c.id == delivery
        sent = deliveries.update().where(row).values(state=DeliveryState.SENT, settled_at=1)
        tx.connection.execute(sent)
        settle_jobs(tx, DeliveryId(delivery), DeliveryState.SENT, now=now)


def live(gateway: Gateway, asked: list[tuple[datetime, Plan]], pauses: Iterator[timedelta]) -> None:
    """From one due moment to the next, late by a pause each, with restarts between."""
    to_ask = sorted(asked, key=lambda one: one[0])
    plans = [plan for _, plan in asked]
    now = BEGIN
    for look in itertools.count():
        due = gateway.next(now)
        if to_ask and (due is None or to_ask[0][0] <= due):
            asked_at, plan = to_ask.pop(0)
            # A pause may have ended after it: nobody asks before that.
            if plan.slots and plan.slots[0] > max(now, asked_at):
                now = max(now, asked_at)
                gateway.create(plan, now)
            else:
                plan.slots = []
            continue
        if due is None or due > END:
            return
        now = due + next(pauses)
        if look % 12 == 3:
            gateway.restart(now)
        gateway.look(now)
        for plan in plans:
            if plan.id is not None:
                plan.look(now)


def check(gateway: Gateway, plan: Plan) -> None:
    """Each slot has one turn, none was early, and the job stands where it should."""
    mine = select(turns).where(turns.c.job_id == plan.id).order_by(turns.c.slot_at)
    rows = gateway.write(lambda tx: tx.connection.execute(mine).all())
    assert [from_millis(row.slot_at) for row in rows] == sorted(plan.must)
    for row in rows:
        slot = from_millis(row.slot_at)
        seen_at = plan.must[slot]
        assert row.created_at >= row.slot_at
        if seen_at is None:
            assert (row.state, row.reason) == ("cancelled", "missed")
        elif plan.missed is MissedWindow.CATCH_UP_ONE:
            assert row.state == "answered"
        elif row.state == "answered":
            assert seen_at - slot <= timedelta(hours=1)
        else:
            assert (row.state, row.reason) == ("cancelled", "missed")
            assert seen_at - slot > timedelta(seconds=60)
    job = gateway.write(lambda tx: tx.connection.execute(select(jobs).where(jobs.c.id == plan.id)))
    state = job.one().state
    if plan.missed is MissedWindow.CATCH_UP_ONE and state != JobState.ACTIVE:
        assert state == JobState.DONE
        assert not plan.slots


# In parts, so that none takes long: 240 schedules in all.
@pytest.mark.parametrize("part", range(PARTS))
@given(
    asked=st.lists(plans(), min_size=JOBS, max_size=JOBS),
    pauses=st.lists(st.sampled_from(LAGS), min_size=5, max_size=40),
)
@settings(
    max_examples=EXAMPLES,
    # To shrink a year takes longer than a test may.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_in_a_year_each_slot_of_200_schedules_has_one_turn(
    part: int, asked: list[tuple[datetime, Plan]], pauses: list[timedelta]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        gateway = Gateway(Path(directory) / "a.db")
        live(gateway, asked, itertools.cycle(pauses))
        for _, plan in asked:
            if plan.id is not None:
                check(gateway, plan)
        gateway.close()


def test_the_calendar_here_is_right_where_clocks_change() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    gap = shown_at(date(2026, 3, 29), time(2, 30), berlin)
    fold = shown_at(date(2026, 10, 25), time(2, 30), berlin)
    assert gap == datetime(2026, 3, 29, 1, tzinfo=UTC)
    assert fold == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
