import pytest
import trip_python
from toolsrv import Failure, ToolError, testing

CITIES = {"Paris": (48.8566, 2.3522), "Berlin": (52.52, 13.405)}
BERLIN = {"start_city": "Paris", "end_city": "Berlin", "start": "2026-05-01T09:00:00+02:00", "unit": "mi"}


def find(arguments):
    if arguments["name"] not in CITIES:
        raise ToolError("No such city.", code="not_found", status=404)
    latitude, longitude = CITIES[arguments["name"]]
    return [{"name": arguments["name"], "latitude": latitude, "longitude": longitude}]


def convert(arguments):
    if arguments["to"] == "smoots":
        raise ToolError("No such unit.", code="unknown_unit")
    assert round(arguments["value"]) == 877 and arguments["from"] == "km"
    return {"value": 545.2, "unit": "mi"}


def add(arguments):
    if arguments["minutes"] != 66:
        raise Failure("busy", code="overloaded")
    return {"result": {"time": "2026-05-01T08:06:00Z"}}


@pytest.fixture(autouse=True)
def others():
    with testing.grant(tools={"geo-python/find": find, "units/convert": convert, "time/add": add}):
        yield


def test_plan():
    assert testing.call(trip_python.plan, BERLIN) == {
        "distance": 545.2,
        "unit": "mi",
        "arrival": "2026-05-01T08:06:00Z",
        "text": "Paris to Berlin: 545.2 mi, there at 2026-05-01T08:06:00Z",
    }


@pytest.mark.parametrize(
    "changed, message, code",
    [
        ({"end_city": "Berlln"}, 'The argument "end_city": No such city.', "not_found"),
        ({"unit": "smoots"}, 'The argument "unit": No such unit.', "unknown_unit"),
        ({"speed": 100}, "busy", "overloaded"),
    ],
)
def test_errors(changed, message, code):
    with pytest.raises((ToolError, Failure)) as wrong:
        testing.call(trip_python.plan, {**BERLIN, **changed})
    assert (str(wrong.value), wrong.value.code) == (message, code)
