"""Looks up cities in a table that the operator puts into a folder."""

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from toolsrv import Example, Field, ToolError, module, needs, tool

module(namespace="geo-python", version="1.0.0")
needs(files=["geo"])

# Tests read another one.
TABLE = Path("/geo/cities.csv")

Latitude = Annotated[float, Field(ge=-90, le=90, description="Degrees north.")]
Longitude = Annotated[float, Field(ge=-180, le=180, description="Degrees east.")]


@dataclass
class City:
    """A city."""

    name: str
    country: Annotated[str, Field(description="ISO 3166-1, two letters.")]
    latitude: float
    longitude: float
    population: int


@dataclass
class Near(City):
    """A city, and how far it is."""

    distance_km: float


PARIS = {"name": "Paris", "country": "FR", "latitude": 48.8566, "longitude": 2.3522, "population": 2103000}


@tool(title="Find cities", read_only=True, open_world=False, examples=[Example({"name": "paris"}, [PARIS])])
def find(name: Annotated[str, Field(min_length=1, max_length=100)], max: Annotated[int, Field(ge=1, le=50)] = 5) -> list[City]:
    """Find cities by name: where they are, and how many people live there.

    Args:
        name: The name of a city, or how it begins, in any case.
        max: How many cities at most, the largest first.
    """
    found = [city for city in cities() if city.name.lower().startswith(name.lower())]
    if not found:
        raise ToolError(f'No city\'s name begins with "{name}": try less of it, or the English name.', code="not_found", status=404)
    return sorted(found, key=lambda city: -city.population)[:max]


@tool(title="Nearest cities", read_only=True, open_world=False, examples=[Example({"latitude": 48.8, "longitude": 2.13, "max": 1})])
def nearest(latitude: Latitude, longitude: Longitude, max: Annotated[int, Field(ge=1, le=50)] = 3) -> list[Near]:
    """Find the cities that are nearest to a place, with their distance in km.

    Args:
        max: How many cities at most, the nearest first.
    """
    near = [Near(**vars(city), distance_km=round(distance(latitude, longitude, city), 1)) for city in cities()]
    return sorted(near, key=lambda city: city.distance_km)[:max]


def cities() -> Iterator[City]:
    """Yields the cities of the table, which is read in each call: a new one is seen at once."""
    try:
        with TABLE.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                place = float(row["latitude"]), float(row["longitude"])
                yield City(row["name"], row["country"], *place, int(row["population"]))
    except FileNotFoundError:
        raise ToolError("The folder geo has no cities.csv.", code="no_table", status=503) from None
    except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
        raise ToolError(f"The folder geo has no cities.csv that can be read: {error}", code="bad_table", status=503) from None


def distance(latitude: float, longitude: float, city: City) -> float:
    """Returns how many km it is to a city, on a sphere of the size of the earth."""
    a, b = math.radians(latitude), math.radians(city.latitude)
    turn = math.radians(city.longitude - longitude)
    h = math.sin((b - a) / 2) ** 2 + math.cos(a) * math.cos(b) * math.sin(turn / 2) ** 2
    return 2 * 6371.0088 * math.asin(min(1, math.sqrt(h)))
