"""Plans trips, for which it asks three other tools."""

import math
from dataclasses import dataclass
from typing import Annotated, Any

from toolsrv import Example, Failure, Field, ToolError, module, needs, tool, tools

module(namespace="trip-python", version="1.0.0")
needs(tools=["geo-python/find", "units/convert", "time/add"])


@dataclass
class Plan:
    """A trip."""

    distance: Annotated[float, Field(description="As the crow flies.")]
    unit: str
    arrival: str
    text: str


BERLIN = {"start_city": "Paris", "end_city": "Berlin", "start": "2026-05-01T09:00:00+02:00", "unit": "mi"}


@tool(title="Plan a trip", read_only=True, open_world=False, examples=[Example(BERLIN)])
def plan(
    start_city: Annotated[str, Field(min_length=1, max_length=100)],
    end_city: Annotated[str, Field(min_length=1, max_length=100)],
    start: str,
    speed: Annotated[float, Field(gt=0, le=100_000)] = 800,
    unit: Annotated[str, Field(max_length=50)] = "km",
) -> Plan:
    """Tell how far it is from one city to another, and when somebody arrives there who goes straight at a given speed.

    Args:
        start: When it begins: a date and time, with the difference to UTC, such as 2026-05-01T09:00:00+02:00.
        speed: In km/h.
        unit: The unit of the distance, such as "mi".
    """
    begin = ask("start_city", "geo-python/find", name=start_city, max=1)[0]
    end = ask("end_city", "geo-python/find", name=end_city, max=1)[0]
    km = distance(begin, end)
    far = ask("unit", "units/convert", **{"value": km, "from": "km", "to": unit, "digits": 4})
    arrival = ask("start", "time/add", time=start, minutes=round(km / speed * 60))["result"]["time"]
    text = f"{begin['name']} to {end['name']}: {far['value']} {far['unit']}, there at {arrival}"
    return Plan(far["value"], far["unit"], arrival, text)


def ask(argument: str, path: str, **arguments: Any) -> Any:
    """Calls another tool. What it says is wrong is told with the argument that it is about."""
    try:
        return tools.call(path, arguments)
    except Failure as failure:
        if failure.code != "tool_error":
            raise
        raise ToolError(f'The argument "{argument}": {failure.message}', code=failure.tool_code) from None


def distance(a: dict[str, Any], b: dict[str, Any]) -> float:
    """Returns how many km two cities are apart, on a sphere of the size of the earth."""
    north = [math.radians(city["latitude"]) for city in (a, b)]
    turn = math.radians(b["longitude"] - a["longitude"])
    h = math.sin((north[1] - north[0]) / 2) ** 2 + math.cos(north[0]) * math.cos(north[1]) * math.sin(turn / 2) ** 2
    return 2 * 6371.0088 * math.asin(min(1, math.sqrt(h)))
