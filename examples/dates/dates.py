"""Calculates with dates in time zones: series of appointments, and hours in which people on several continents all work."""

import calendar
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, TypedDict
from zoneinfo import ZoneInfo

from toolsrv import Example, Field, ToolError, module, tool

module(namespace="dates", version="1.0.0")

PERIOD = re.compile(r"P(?=.)(?:(\d{1,4})Y)?(?:(\d{1,5})M)?(?:(\d{1,5})W)?(?:(\d{1,6})D)?(?:T(?=.)(?:(\d{1,6})H)?(?:(\d{1,7})M)?)?")

# A datetime has an offset, and this means what clocks show somewhere.
Local = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d$", examples=["2026-01-31T09:00"])]
Zone = Annotated[str, Field(min_length=1, max_length=64, description="An IANA name.", examples=["Europe/Berlin"])]


def zone_of(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError) as e:
        raise ToolError(f"{name!r} is not a time zone: use a name such as Europe/Berlin.", code="no_such_zone") from e


@dataclass
class Moment:
    """A time of a series."""

    local: datetime
    utc: datetime
    weekday: str
    note: str = ""


@tool(
    title="List a series of appointments",
    read_only=True,
    open_world=False,
    examples=[
        Example(
            {"start": "2026-01-31T09:00", "every": "P1M", "zone": "America/New_York", "count": 3},
            result=[
                {"local": "2026-01-31T09:00:00-05:00", "utc": "2026-01-31T14:00:00+00:00", "weekday": "Saturday", "note": ""},
                {
                    "local": "2026-02-28T09:00:00-05:00",
                    "utc": "2026-02-28T14:00:00+00:00",
                    "weekday": "Saturday",
                    "note": "the month has no day 31",
                },
                {"local": "2026-03-31T09:00:00-04:00", "utc": "2026-03-31T13:00:00+00:00", "weekday": "Tuesday", "note": ""},
            ],
        )
    ],
)
def series(
    start: Local,
    every: Annotated[str, Field(pattern=r"^P[0-9YMWDTH]+$", max_length=40, examples=["P1M", "P2W", "PT36H"])],
    zone: Zone = "UTC",
    count: Annotated[int, Field(ge=1, le=500)] = 12,
) -> list[Moment]:
    """Lists appointments that repeat: monthly, every two weeks, every 36 hours.

    Years, months, weeks and days keep the local time, whatever clocks do. Hours and minutes are time that passes.

    Args:
        start: The first one, as local time in the zone.
        every: How far they are apart, as an ISO 8601 duration of years, months, weeks, days, hours and minutes.
        zone: Where the appointments take place.
        count: How many to list.
    """
    where = zone_of(zone)
    try:
        local = datetime.fromisoformat(start)
    except ValueError:
        raise ToolError(f"{start!r} is on no calendar and no clock.", code="no_such_time") from None
    match = PERIOD.fullmatch(every)
    if match is None:
        raise ToolError(f"{every!r} is not a duration: write P1M, P2W, P10D or PT36H, largest unit first.", code="syntax")
    years, months, weeks, days, hours, minutes = (int(part or 0) for part in match.groups())
    found = []
    for i in range(count):
        try:
            at, note = moved(local, i * (12 * years + months), i * (7 * weeks + days))
            utc = at.replace(tzinfo=where).astimezone(UTC) + i * timedelta(hours=hours, minutes=minutes)
            shown = utc.astimezone(where)
        except (OverflowError, ValueError):
            raise ToolError(f"Appointment {i + 1} is after the year 9999: ask for fewer.", code="too_far") from None
        if not (hours or minutes):
            note = "; ".join(filter(None, [note, change(at, where)]))
        found.append(Moment(shown, utc, calendar.day_name[shown.weekday()], note))
    return found


def moved(at: datetime, months: int, days: int) -> tuple[datetime, str]:
    """Returns a time some months and days later. A month that is too short ends earlier."""
    years, month = divmod(at.month - 1 + months, 12)
    year = at.year + years
    last = calendar.monthrange(year, month + 1)[1]
    later = at.replace(year=year, month=month + 1, day=min(at.day, last)) + timedelta(days=days)
    return later, f"the month has no day {at.day}" if at.day > last else ""


def change(at: datetime, where: ZoneInfo) -> str:
    """Says what is odd about a local time."""
    early, late = (at.replace(tzinfo=where, fold=fold) for fold in (0, 1))
    if early.utcoffset() == late.utcoffset():
        return ""
    if early.astimezone(UTC).astimezone(where).replace(tzinfo=None) != at:
        return f"clocks skip {at:%H:%M} that day"
    return f"clocks show {at:%H:%M} twice that day; this is the first"


class Person(TypedDict):
    """Somebody who is invited."""

    zone: Zone
    name: Annotated[str, Field(max_length=100)]


@dataclass
class Slot:
    """A time that suits all, with the local time of each."""

    start: datetime
    end: datetime
    local: dict[str, str]


@tool(
    title="Find a time for a meeting",
    read_only=True,
    open_world=False,
    examples=[
        Example(
            {
                "people": [{"name": "Ada", "zone": "Europe/London"}, {"name": "Grace", "zone": "America/New_York"}],
                "from_date": "2026-03-13",
                "days": 4,
                "minutes": 150,
            },
            result=[
                {
                    "start": "2026-03-13T13:00:00+00:00",
                    "end": "2026-03-13T17:00:00+00:00",
                    "local": {"Ada": "Fri 13:00-17:00", "Grace": "Fri 09:00-13:00"},
                },
                {
                    "start": "2026-03-16T13:00:00+00:00",
                    "end": "2026-03-16T17:00:00+00:00",
                    "local": {"Ada": "Mon 13:00-17:00", "Grace": "Mon 09:00-13:00"},
                },
            ],
        )
    ],
)
def meeting(
    people: Annotated[list[Person], Field(min_length=1, max_length=50)],
    from_date: date,
    days: Annotated[int, Field(ge=1, le=60)] = 7,
    minutes: Annotated[int, Field(ge=5, le=720)] = 60,
    begin: time = time(9),
    end: time = time(17),
) -> list[Slot]:
    """Finds when all people are at work: the spans that lie within everybody's working hours, weekends left out.

    Args:
        people: Who is invited, with their zones.
        from_date: The first day to look at.
        days: How many days to look at.
        minutes: How long the meeting takes.
        begin: When work begins, local time of each.
        end: When work ends.
    """
    if begin.tzinfo or end.tzinfo or begin >= end:
        raise ToolError(f"Work begins at {begin} and ends at {end}: it has to end later, on the same day, in local time.", code="no_hours")
    names = [person["name"] for person in people]
    if len(set(names)) < len(names):
        raise ToolError("Two people have the same name: make the names different.", code="same_name")
    common = [(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))]
    try:
        for zone in {person["zone"]: None for person in people}:
            common = overlaps(common, hours_of(zone_of(zone), from_date, days, (begin, end)))
    except OverflowError:
        raise ToolError("The days lie too far from today: no calendar covers them.", code="too_far") from None
    return [
        Slot(first, last, {p["name"]: shown(first, last, zone_of(p["zone"])) for p in people})
        for first, last in common
        if last - first >= timedelta(minutes=minutes)
    ]


def hours_of(where: ZoneInfo, first: date, days: int, hours: tuple[time, time]) -> list[tuple[datetime, datetime]]:
    """Returns the working hours of a zone, as UTC."""
    each = (first + timedelta(days=i) for i in range(days))
    return [
        (datetime.combine(day, hours[0], where).astimezone(UTC), datetime.combine(day, hours[1], where).astimezone(UTC))
        for day in each
        if day.weekday() < 5
    ]


def overlaps(a: list[tuple[datetime, datetime]], b: list[tuple[datetime, datetime]]) -> list[tuple[datetime, datetime]]:
    """Returns what lies in spans of both lists, which are in order."""
    found, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        first, last = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if first < last:
            found.append((first, last))
        if a[i][1] <= b[j][1]:
            i += 1
        else:
            j += 1
    return found


def shown(first: datetime, last: datetime, where: ZoneInfo) -> str:
    return f"{first.astimezone(where):%a %H:%M}-{last.astimezone(where):%H:%M}"
