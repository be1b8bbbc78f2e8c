from pathlib import Path

import geo_python
import pytest
from toolsrv import ToolError, testing


@pytest.fixture(autouse=True)
def table(monkeypatch):
    monkeypatch.setattr(geo_python, "TABLE", Path(__file__).parent / "testdata/cities.csv")


def test_examples():
    testing.examples(geo_python)


def test_find():
    assert [city["name"] for city in testing.call(geo_python.find, name="PARIS")] == ["Paris"]
    with pytest.raises(ToolError, match='No city\'s name begins with "Atlantis"'):
        testing.call(geo_python.find, name="Atlantis")


def test_nearest():
    got = testing.call(geo_python.nearest, latitude=48.8566, longitude=2.3522, max=2)
    assert (got[0]["name"], got[0]["distance_km"]) == ("Paris", 0) and got[1]["distance_km"] > 100


@pytest.mark.parametrize(
    "text, code",
    [
        (None, "no_table"),
        ("name,country\nParis,FR\n", "bad_table"),
        ("name,country,latitude,longitude,population\nParis,FR,x,2,3\n", "bad_table"),
    ],
)
def test_tables_that_are_wrong(monkeypatch, tmp_path, text, code):
    monkeypatch.setattr(geo_python, "TABLE", tmp_path / "cities.csv")
    if text is not None:
        geo_python.TABLE.write_text(text)
    with pytest.raises(ToolError) as wrong:
        testing.call(geo_python.find, name="Paris")
    assert (wrong.value.code, wrong.value.status) == (code, 503)
