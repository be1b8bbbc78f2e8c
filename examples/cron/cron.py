"""Explains cron expressions, and says when they run."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated
from zoneinfo import ZoneInfo

from english import DAYS, MONTHS, said
from toolsrv import Example, Field, ToolError, module, tool

module(namespace="cron", version="1.0.0")

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


@dataclass
class Part:
    """One of the five fields: its name, its range, and names that values may have."""

    name: str
    low: int
    high: int
    names: dict[str, int]

    def parse(self, text: str) -> frozenset[int]:
        """Returns the values that a field stands for."""
        values: set[int] = set()
        for part in text.split(","):
            match = re.fullmatch(r"(\*|\?|(\w+)(?:-(\w+))?)(?:/(\d{1,4}))?", part)
            if match is None:
                raise ToolError(
                    f"{part!r} in the field {self.name} can't be read: write a value, a range such as {self.low}-{self.high}, "
                    "* or a list of them, each with a step such as */5 if you like.",
                    code="syntax",
                )
            every, first, last, step = match.groups()
            low, high = (self.low, self.high) if first is None else (self.value(first), self.value(last or first))
            if first is not None and last is None and step is not None:
                high = self.high  # 5/15 is "from 5 on"
            if first is not None and self.name == "day of week" and high == 0 < low:
                high = 7  # fri-sun
            if low > high:
                raise ToolError(f"{part!r} in the field {self.name} goes backwards: write {high}-{low}, or two ranges.", code="syntax")
            if step is not None and int(step) == 0:
                raise ToolError(f"{part!r} in the field {self.name} has a step of 0: the smallest is 1.", code="syntax")
            values.update(range(low, high + 1, int(step or 1)))
        if self.name == "day of week":
            values = {value % 7 for value in values}
        return frozenset(values)

    def value(self, text: str) -> int:
        value = self.names.get(text.lower()[:3], -1) if text.isalpha() else int(text) if text.isdecimal() and len(text) < 4 else -1
        high = 7 if self.name == "day of week" else self.high
        if not self.low <= value <= high:
            names = f" or {' '.join(self.names)}" if self.names else ""
            raise ToolError(f"{text!r} is not a {self.name}: use {self.low} to {high}{names}.", code="syntax")
        return value


FIELDS = [
    Part("minute", 0, 59, {}),
    Part("hour", 0, 23, {}),
    Part("day of month", 1, 31, {}),
    Part("month", 1, 12, {name.lower()[:3]: i for i, name in enumerate(MONTHS, 1)}),
    Part("day of week", 0, 6, {name.lower()[:3]: i for i, name in enumerate(DAYS)}),
]


@dataclass
class Explanation:
    """What an expression means."""

    text: str
    next: list[datetime]


@tool(
    title="Explain a cron expression",
    read_only=True,
    open_world=False,
    examples=[
        Example(
            {"expression": "30 9 * * 1-5", "zone": "Europe/Berlin", "after": "2026-03-27T12:00:00Z", "count": 2},
            result={"text": "At 09:30 on Monday to Friday.", "next": ["2026-03-30T09:30:00+02:00", "2026-03-31T09:30:00+02:00"]},
        ),
        Example(
            {"expression": "*/15 8-17 1,15 * *", "after": "2026-01-01T17:40:00Z", "count": 2},
            result={
                "text": "Every 15 minutes from 08:00 to 17:59 on days 1 and 15 of the month.",
                "next": ["2026-01-01T17:45:00+00:00", "2026-01-15T08:00:00+00:00"],
            },
        ),
    ],
)
def explain(
    expression: Annotated[str, Field(min_length=1, max_length=200, examples=["30 9 * * 1-5", "@daily"])],
    zone: Annotated[str, Field(max_length=64)] = "UTC",
    after: datetime | None = None,
    count: Annotated[int, Field(ge=0, le=100)] = 5,
) -> Explanation:
    """Explains a cron expression of five fields in plain English, and lists when it runs next.

    Args:
        expression: Minute, hour, day of month, month and day of week, or one of @hourly, @daily, @weekly, @monthly, @yearly.
        zone: The time zone of the machine that runs it, by its IANA name.
        after: When to begin. Without it, now.
        count: How many times to list.
    """
    words = MACROS.get(expression.strip().lower(), expression).split()
    if len(words) != 5:
        raise ToolError(f"{expression!r} has {len(words)} fields: write minute, hour, day of month, month and day of week.", code="syntax")
    fields = [field.parse(word) for field, word in zip(FIELDS, words)]
    try:
        where = ZoneInfo(zone)
    except (KeyError, OSError, ValueError) as e:  # ZoneInfoNotFoundError is a KeyError
        raise ToolError(f"{zone!r} is not a time zone: use a name such as Europe/Berlin.", code="no_such_zone") from e
    begin = after or datetime.now(UTC)
    return Explanation(said(fields, restricted(words)), list(runs(words, fields, begin, where, count)))


def runs(words, fields, begin, where, count):
    """Yields when a job runs: at local times. One that clocks skip is run when they have been put forward, one that they repeat
    the first time only."""
    minutes, hours, days, months, weekdays = fields
    either = restricted(words)
    day = begin.astimezone(where).date()
    idle = 0
    while count > 0 and idle < 366 * 9 and day.year < 9999:  # February 29 comes at least every 8 years
        in_month, in_week = day.day in days, day.isoweekday() % 7 in weekdays
        idle += 1
        if day.month in months and (in_month or in_week if either else in_month and in_week):
            local = (datetime(day.year, day.month, day.day, h, m, tzinfo=where) for h in hours for m in minutes)
            for at in sorted({time.astimezone(UTC) for time in local}):
                if at > begin and count > 0:
                    yield at.astimezone(where)
                    count, idle = count - 1, 0
        day += timedelta(days=1)


def restricted(words):
    """Returns whether both days are restricted: one of the two is then enough."""
    return words[2][0] not in "*?" and words[4][0] not in "*?"
