package main

import (
	"fmt"
	"strings"
	"testing"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
	"github.com/toolsrv/toolsrv/sdk/go/toolsrvtest"
)

// world has answers like those of the other tools.
func world() *toolsrvtest.World {
	cities := map[string]string{
		"Paris":  `[{"name": "Paris", "latitude": 48.8566, "longitude": 2.3522}]`,
		"Berlin": `[{"name": "Berlin", "latitude": 52.52, "longitude": 13.405}]`,
		"Empty":  `[]`,
	}
	return &toolsrvtest.World{Tools: map[string]func(string) (string, error){
		"geo/find": func(arguments string) (string, error) {
			for name, found := range cities {
				if arguments == fmt.Sprintf(`{"name":%q,"max":1}`, name) {
					return found, nil
				}
			}
			return "", &toolsrv.Error{Code: "not_found", Message: "No such city."}
		},
		"units/convert": func(arguments string) (string, error) {
			if strings.Contains(arguments, `"to":"smoots"`) {
				return "", &toolsrv.Error{Code: "unknown_unit", Message: "No such unit."}
			}
			return `{"value": 545.2, "unit": "mi"}`, nil
		},
		"time/add": func(arguments string) (string, error) {
			if arguments != `{"time":"2026-05-01T09:00:00+02:00","minutes":66}` {
				return "", &toolsrv.Failure{Code: "overloaded", Message: arguments}
			}
			return `{"result": {"time": "2026-05-01T08:06:00Z"}}`, nil
		},
	}}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	const start = `, "start": "2026-05-01T09:00:00+02:00"`
	tests := []struct{ name, arguments, want, code string }{
		{"plan", `{"from": "Paris", "to": "Berlin", "unit": "mi"` + start + `}`, `{"distance":545.2,"unit":"mi","arrival":"2026-05-01T08:06:00Z","text":"Paris to Berlin: 545.2 mi, there at 2026-05-01T08:06:00Z"}`, ""},
		{"no such city", `{"from": "Paris", "to": "Berlln"` + start + `}`, `The argument "to": No such city.`, "not_found"},
		{"no city", `{"from": "Empty", "to": "Berlin"` + start + `}`, `The argument "from": there is no city`, "not_found"},
		{"no such unit", `{"from": "Paris", "to": "Berlin", "unit": "smoots"` + start + `}`, `The argument "unit": No such unit.`, "unknown_unit"},
		{"busy", `{"from": "Paris", "to": "Berlin", "speed": 100` + start + `}`, `"minutes":526`, "overloaded"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := world().Call(t, module, "plan", test.arguments)
			if test.code == "" {
				if err != nil || got != test.want {
					t.Errorf("got %s, %v, want %s", got, err, test.want)
				}
			} else if err == nil || toolsrv.AsError(err).Code != test.code || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %s, %v, want the code %s and %q", got, err, test.code, test.want)
			}
		})
	}
}
