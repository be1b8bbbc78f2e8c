package main

import (
	"fmt"
	"net/http"
	"testing"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
	"github.com/toolsrv/toolsrv/sdk/go/toolsrvtest"
)

// api has answers like those of the API.
func api(w http.ResponseWriter, r *http.Request) {
	switch q := r.URL.Query(); {
	case r.URL.Host != "api.open-meteo.com" || r.URL.Path != "/v1/forecast":
		http.NotFound(w, r)
	case q.Get("latitude") == "0.0000":
		http.Error(w, `{"error": true, "reason": "no"}`, http.StatusBadRequest)
	case q.Get("latitude") == "1.0000":
		toolsrvtest.FailRequest(w, &toolsrv.Failure{Code: "timeout", Message: "The server took too long."})
	case q.Get("temperature_unit") == "fahrenheit":
		fmt.Fprint(w, `{"current": {"time": "2026-05-01T12:00", "temperature_2m": 70.5, "wind_speed_10m": 6.2, "weather_code": 61}}`)
	default:
		fmt.Fprint(w, `{"current": {"time": "2026-05-01T12:00", "temperature_2m": 21.4, "wind_speed_10m": 10, "weather_code": 0}}`)
	}
}

func TestNow(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, settings, arguments, want, code string }{
		{"metric", "", `{"latitude": 48.86, "longitude": 2.35}`, `{"time":"2026-05-01T12:00","temperature":21.4,"wind":10,"text":"clear sky, 21.4 °C, wind 10 km/h"}`, ""},
		{"imperial", `{"units": "imperial"}`, `{"latitude": 48.86, "longitude": 2.35}`, `{"time":"2026-05-01T12:00","temperature":70.5,"wind":6.2,"text":"rain, 70.5 °F, wind 6.2 mph"}`, ""},
		{"refused", "", `{"latitude": 0, "longitude": 0}`, "", "bad_status"},
		{"slow", "", `{"latitude": 1, "longitude": 0}`, "", "timeout"},
		{"a service that is not declared", `{"service": "https://example.com"}`, `{"latitude": 2, "longitude": 0}`, "", "not_granted"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			world := &toolsrvtest.World{HTTP: http.HandlerFunc(api), Settings: test.settings}
			got, err := world.Call(t, module, "now", test.arguments)
			if test.code == "" && (err != nil || got != test.want) {
				t.Errorf("got %s, %v, want %s", got, err, test.want)
			}
			if test.code != "" && (err == nil || toolsrv.AsError(err).Code != test.code || toolsrv.AsError(err).Status != 502) {
				t.Errorf("got %s, %v, want an error with the code %s and status 502", got, err, test.code)
			}
		})
	}
}

func TestSky(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]string{0: "clear sky", 2: "some clouds", 45: "fog", 95: "thunderstorm", 100: "unknown weather"} {
		if got := sky(code); got != want {
			t.Errorf("%d: got %q, want %q", code, got, want)
		}
	}
}
