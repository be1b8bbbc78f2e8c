"""Tells the weather at a place, which it asks an API for: where the operator grants that."""

from dataclasses import dataclass
from typing import Annotated, Literal

from toolsrv import Example, Field, ToolError, http, module, needs, settings, tool


@dataclass
class Settings:
    """The operator's."""

    units: Literal["metric", "imperial"] = "metric"
    service: Annotated[str, Field(pattern="^https://[^/?#]+$", description="The API, which may be another one of Open-Meteo's.")] = (
        "https://api.open-meteo.com"
    )


module(namespace="weather-python", version="1.0.0")
needs(http=["https://*.open-meteo.com/v1/"], settings=Settings)
loaded = settings.load(Settings)

UNITS = {
    "metric": ("°C", "km/h", {}),
    "imperial": ("°F", "mph", {"temperature_unit": "fahrenheit", "wind_speed_unit": "mph"}),
}

# What a code of the World Meteorological Organization means: see the first line whose number is not less.
SKY = [
    (0, "clear sky"),
    (2, "some clouds"),
    (3, "overcast"),
    (48, "fog"),
    (57, "drizzle"),
    (67, "rain"),
    (77, "snow"),
    (82, "showers"),
    (86, "snow showers"),
    (99, "thunderstorm"),
]


@dataclass
class Weather:
    """The weather now."""

    time: Annotated[str, Field(description="When it was measured, in UTC.")]
    temperature: float
    wind: Annotated[float, Field(description="Its speed.")]
    text: Annotated[str, Field(description="The weather in words.")]


@tool(title="Weather now", read_only=True, open_world=True, examples=[Example({"latitude": 48.86, "longitude": 2.35})])
def now(latitude: Annotated[float, Field(ge=-90, le=90)], longitude: Annotated[float, Field(ge=-180, le=180)]) -> Weather:
    """Tell the weather at a place on the earth as it is now: temperature, wind, sky.

    Args:
        latitude: Degrees north.
        longitude: Degrees east.
    """
    given = loaded.get()
    temperature, wind, more = UNITS[given.units]
    answer = http.get(
        f"{given.service}/v1/forecast",
        params={
            "latitude": f"{latitude:.4f}",
            "longitude": f"{longitude:.4f}",
            "current": "temperature_2m,wind_speed_10m,weather_code",
            **more,
        },
    )
    if answer.is_error:
        raise ToolError(f"The weather service answers with the status {answer.status_code}.", code="bad_status", status=502)
    told = answer.json()["current"]
    w = Weather(told["time"], told["temperature_2m"], told["wind_speed_10m"], "")
    w.text = f"{sky(told['weather_code'])}, {w.temperature} {temperature}, wind {w.wind} {wind}"
    return w


def sky(code: int) -> str:
    """Returns what a code means, in words."""
    return next((text for last, text in SKY if code <= last), "unknown weather")
