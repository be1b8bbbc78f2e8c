"""Says in English when a job runs."""

from collections.abc import Callable, Collection

MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]
DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]


def said(fields: list[frozenset[int]], either: bool) -> str:
    """Returns when a job runs, given the values of its five fields. either: one of the two days is enough."""
    minutes, hours, days, months, weekdays = (sorted(field) for field in fields)
    month = listed(months, [MONTHS[m - 1] for m in months]) if len(months) < 12 else ""
    when = []
    if len(days) < 31:
        when.append(f"on {'day' if len(days) == 1 else 'days'} {listed(days)} of {month or 'the month'}")
    if len(weekdays) < 7:
        monday_first = sorted(weekdays, key=since_monday)
        text = "on " + listed(monday_first, [DAYS[d] for d in monday_first], since_monday)
        when.append(text + f" in {month}" if month and (either or not when) else text)
    elif month and not when:
        when.append(f"in {month}")
    return " ".join([clock(minutes, hours), *[(" or " if either else " and ").join(when)] * bool(when)]) + "."


def since_monday(day: int) -> int:
    return (day - 1) % 7


def clock(minutes: list[int], hours: list[int]) -> str:
    """Returns when in a day."""
    if len(minutes) * len(hours) <= 6:
        return "At " + joined([f"{h:02}:{m:02}" for h in hours for m in minutes])
    every_hour = "Every hour"
    gap = hours[1] - hours[0] if len(hours) > 1 else 24
    where = ""
    if len(hours) > 2 and gap > 1 and hours == list(range(hours[0], 24, gap)):
        every_hour = f"Every {gap} hours" + (f" from {hours[0]:02}:00 on" if hours[0] else "")
        where = f" in every {ordinal(gap)} hour" + (f" from {hours[0]:02}:00 on" if hours[0] else "")
    elif len(hours) < 24:
        where = " " + joined([f"from {a:02}:00 to {b:02}:59" for a, b in ranges(hours)])
    if len(minutes) == 1:
        text = every_hour if every_hour != "Every hour" else every_hour + where
        return text + (f", at minute {minutes[0]}" if minutes[0] else "")
    step = minutes[1] - minutes[0]
    if len(minutes) == 60:
        return "Every minute" + where
    if minutes == list(range(minutes[0], 60, step)) and 60 % step == 0 and len(minutes) > 2:
        return f"Every {step} minutes" + (f" from minute {minutes[0]} on" if minutes[0] else "") + where
    return f"At minutes {listed(minutes)}" + (where or " of every hour")


def ordinal(n: int) -> str:
    return {2: "second", 3: "third"}.get(n, f"{n}th")


def ranges(values: Collection[int], key: Callable[[int], int] = int) -> list[tuple[int, int]]:
    """Returns the first and last of each run of neighbours."""
    spans: list[tuple[int, int]] = []
    for value in values:
        if spans and key(value) == key(spans[-1][1]) + 1:
            spans[-1] = spans[-1][0], value
        else:
            spans.append((value, value))
    return spans


def listed(values: list[int], names: list[str] | None = None, key: Callable[[int], int] = int) -> str:
    """Returns values as people list them: runs of three and more as a range."""
    named = dict(zip(values, names or map(str, values)))
    parts = []
    for first, last in ranges(values, key):
        if key(last) - key(first) > 1:
            parts.append(f"{named[first]} to {named[last]}")
        else:
            parts += [named[value] for value in dict.fromkeys((first, last))]
    return joined(parts)


def joined(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]
