import pytest
import weather_python
from toolsrv import Failure, ToolError, http, testing

PARIS = {"latitude": 48.86, "longitude": 2.35}


def api(request):
    """Answers as the API does."""
    assert request.url.startswith("https://api.open-meteo.com/v1/forecast?latitude=")
    if "latitude=0.0000" in request.url:
        return http.Response(400, json={"error": True, "reason": "no"})
    if "latitude=1.0000" in request.url:
        raise Failure("The server took too long.", code="timeout")
    current = {"time": "2026-05-01T12:00", "temperature_2m": 21.4, "wind_speed_10m": 10, "weather_code": 0}
    if "temperature_unit=fahrenheit" in request.url:
        current |= {"temperature_2m": 70.5, "wind_speed_10m": 6.2, "weather_code": 61}
    return http.Response(200, json={"current": current})


@pytest.mark.parametrize("units, text", [("metric", "clear sky, 21.4 °C, wind 10 km/h"), ("imperial", "rain, 70.5 °F, wind 6.2 mph")])
def test_now(units, text):
    with testing.grant(http=api, settings={"units": units}):
        got = testing.call(weather_python.now, PARIS)
    assert (got["time"], got["text"]) == ("2026-05-01T12:00", text)


def test_errors():
    with testing.grant(http=api, settings={}):
        with pytest.raises(ToolError, match="the status 400"):
            testing.call(weather_python.now, latitude=0, longitude=0)
        with pytest.raises(http.TimeoutException):
            testing.call(weather_python.now, latitude=1, longitude=0)
    with testing.grant(http=api, settings={"service": "https://example.com"}), pytest.raises(http.RequestError, match="doesn't declare"):
        testing.call(weather_python.now, PARIS)


@pytest.mark.parametrize("code, text", [(0, "clear sky"), (2, "some clouds"), (45, "fog"), (95, "thunderstorm"), (100, "unknown weather")])
def test_sky(code, text):
    assert weather_python.sky(code) == text
