from datetime import UTC, datetime, timedelta, timezone

import cron
import pytest
from toolsrv import ToolError, testing

FRIDAY = datetime(2026, 3, 27, 12, tzinfo=UTC)


def test_examples():
    testing.examples(cron)


@pytest.mark.parametrize(
    "expression, want",
    [
        ("@hourly", "Every hour."),
        ("@yearly", "At 00:00 on day 1 of January."),
        ("* * * * *", "Every minute."),
        ("*/5 * * * *", "Every 5 minutes."),
        ("1-59/2 * * * *", "Every 2 minutes from minute 1 on."),
        ("5,6 * * * *", "At minutes 5 and 6 of every hour."),
        ("15 * * * *", "Every hour, at minute 15."),
        ("0 */2 * * *", "Every 2 hours."),
        ("10 1-23/3 * * *", "Every 3 hours from 01:00 on, at minute 10."),
        ("*/10 */6 * * *", "Every 10 minutes in every 6th hour."),
        ("0 9-17/2 * * mon,wed,fri", "At 09:00, 11:00, 13:00, 15:00 and 17:00 on Monday, Wednesday and Friday."),
        ("0 22 * * 5-7", "At 22:00 on Friday to Sunday."),
        ("0 22 * * fri-sun", "At 22:00 on Friday to Sunday."),
        ("0 0 13 * 5", "At 00:00 on day 13 of the month or on Friday."),
        ("0 0 13 1,2 5", "At 00:00 on day 13 of January and February or on Friday in January and February."),
        ("0 8,12,16 * jan-mar *", "At 08:00, 12:00 and 16:00 in January to March."),
        ("* * ? * ?", "Every minute."),
        ("0 0 * * 0,7", "At 00:00 on Sunday."),
        ("50/5 3 * * *", "At 03:50 and 03:55."),
    ],
)
def test_text(expression, want):
    assert cron.explain(expression, count=0).text == want


@pytest.mark.parametrize(
    "expression, zone, want",
    [
        pytest.param("30 2 * * *", "Europe/Berlin", ["28 02:30", "29 03:30", "30 02:30"], id="clocks skip the time"),
        pytest.param("30 2,3 29 3 *", "Europe/Berlin", ["29 03:30"], id="and it is that of another"),
        pytest.param("30 2 29 2 *", "UTC", ["29 02:30"] * 3, id="leap years"),
        pytest.param("0 0 13 * 5", "UTC", ["03 00:00", "10 00:00", "13 00:00"], id="one of the days is enough"),
        pytest.param("0 0 */2 * 5", "UTC", ["03 00:00", "17 00:00", "01 00:00"], id="a step is none"),
        pytest.param("0 0 30 2 *", "UTC", [], id="never"),
    ],
)
def test_next(expression, zone, want):
    got = cron.explain(expression, zone, FRIDAY, 3).next
    assert [f"{at:%d %H:%M}" for at in got][: len(want)] == want
    assert got == sorted(set(got)) and all(at > FRIDAY for at in got) and (want or not got)


def test_repeated_time_runs_once():
    got = cron.explain("30 2 25 10 *", "Europe/Berlin", FRIDAY, 2).next
    assert [at.year for at in got] == [2026, 2027] and got[0].utcoffset() == timedelta(hours=2)


def test_after_has_an_offset():
    after = datetime(2026, 3, 27, 10, tzinfo=timezone(timedelta(hours=1)))
    assert cron.explain("0 * * * *", "Europe/Berlin", after, 1).next[0].hour == 11


def test_100_leap_days():
    assert len(cron.explain("0 0 29 2 *", after=FRIDAY, count=100).next) == 100


@pytest.mark.parametrize(
    "expression, want",
    [
        ("* * * *", "has 4 fields"),
        ("60 * * * *", "'60' is not a minute: use 0 to 59."),
        ("5-1 * * * *", "write 1-5"),
        ("*/0 * * * *", "a step of 0"),
        ("* * L * *", "'L' is not a day of month"),
        ("* * * foo *", "jan feb mar"),
        ("* * * * 8", "use 0 to 7"),
        (", * * * *", "can't be read"),
        ("999999999999999 * * * *", "is not a minute"),
        ("٣ * * * *", "minute"),
    ],
)
def test_errors(expression, want):
    try:
        text = cron.explain(expression, count=0).text
    except ToolError as e:
        assert e.code == "syntax" and want in e.message
    else:
        assert expression.startswith("٣"), text  # a digit, too


@pytest.mark.parametrize("zone", ["Nowhere/X", "../../etc/passwd", "", "Europe"])
def test_no_such_zone(zone):
    with pytest.raises(ToolError) as e:
        cron.explain("@daily", zone)
    assert e.value.code == "no_such_zone"
