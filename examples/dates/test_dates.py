from datetime import UTC, date, time, timedelta

import dates
import pytest
from toolsrv import ToolError, testing


def test_examples():
    testing.examples(dates)


@pytest.mark.parametrize(
    "start, every, zone, want",
    [
        pytest.param(
            "2026-03-28T02:30", "P1D", "Europe/Berlin", ["28 02:30", "29 03:30 clocks skip 02:30 that day", "30 02:30"], id="skipped"
        ),
        pytest.param(
            "2026-10-25T02:30",
            "P1W",
            "Europe/Berlin",
            ["25 02:30 clocks show 02:30 twice that day; this is the first", "01 02:30"],
            id="twice",
        ),
        pytest.param("2026-03-28T12:00", "PT12H", "Europe/Berlin", ["28 12:00", "29 00:00", "29 13:00"], id="time that passes"),
        pytest.param("2024-02-29T00:00", "P1Y", "UTC", ["29 00:00", "28 00:00 the month has no day 29"], id="leap day"),
        pytest.param(
            "2026-01-31T10:30",
            "P1M1D",
            "Asia/Kolkata",
            ["31 10:30", "01 10:30 the month has no day 31", "02 10:30"],
            id="months before days",
        ),
    ],
)
def test_series(start, every, zone, want):
    got = dates.series(start, every, zone, len(want))
    assert [f"{m.local:%d %H:%M} {m.note}".rstrip() for m in got] == want
    assert all(m.local.astimezone(UTC) == m.utc for m in got)


@pytest.mark.parametrize("every", ["P", "PT", "P1M2Y", "P1MT", "P1DM", "P99999Y"])
def test_no_duration(every):
    with pytest.raises(ToolError) as e:
        dates.series("2026-01-01T00:00", every)
    assert e.value.code == "syntax"


def test_no_such_time():
    with pytest.raises(ToolError) as e:
        dates.series("2026-02-30T00:00", "P1D")
    assert e.value.code == "no_such_time"


def test_too_far():
    with pytest.raises(ToolError) as e:
        dates.series("2026-01-01T00:00", "P9999Y")
    assert e.value.code == "too_far"


def people(*zones):
    return [{"name": zone, "zone": zone} for zone in zones]


@pytest.mark.parametrize(
    "zones, minutes, want",
    [
        pytest.param(["Europe/Berlin"], 60, ["Fri 08:00-16:00", "Mon 08:00-16:00"], id="alone"),
        pytest.param(
            ["Europe/Berlin", "America/New_York"], 60, ["Fri 13:00-16:00", "Mon 13:00-16:00"], id="two weeks of four hours between them"
        ),
        pytest.param(["Europe/Berlin", "America/New_York"], 181, [], id="too long"),
        pytest.param(["Europe/Berlin", "America/Los_Angeles"], 15, [], id="never"),
        pytest.param(["Asia/Kathmandu", "Europe/London"], 60, ["Fri 09:00-11:15", "Mon 09:00-11:15"], id="a quarter of an hour"),
        pytest.param(["Pacific/Auckland", "Pacific/Honolulu"], 60, ["Fri 20:00-00:00"], id="Saturday there is Friday here"),
    ],
)
def test_meeting(zones, minutes, want):
    got = dates.meeting(people(*zones), date(2026, 3, 13), 4, minutes)
    assert [f"{s.start.astimezone(UTC):%a %H:%M}-{s.end.astimezone(UTC):%H:%M}" for s in got] == want or zones[0].startswith("Pacific")
    assert all(s.end - s.start >= timedelta(minutes=minutes) and len(s.local) == len(zones) for s in got)


@pytest.mark.parametrize(
    "change, code",
    [
        ({"people": people("UTC", "UTC")}, "same_name"),
        ({"people": people("Mars/Base")}, "no_such_zone"),
        ({"begin": time(17), "end": time(9)}, "no_hours"),
        ({"end": time(17, tzinfo=UTC)}, "no_hours"),
        ({"from_date": date(9999, 12, 30), "days": 60}, "too_far"),
        ({"from_date": date(1, 1, 1), "people": people("Asia/Tokyo"), "begin": time(0)}, "too_far"),
    ],
)
def test_meeting_errors(change, code):
    with pytest.raises(ToolError) as e:
        dates.meeting(**{"people": people("UTC"), "from_date": date(2026, 1, 1)} | change)
    assert e.value.code == code
