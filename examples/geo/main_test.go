package main

import (
	"io/fs"
	"math"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
	"github.com/toolsrv/toolsrv/sdk/go/toolsrvtest"
)

func with(folder fs.FS) *toolsrvtest.World {
	return &toolsrvtest.World{Files: map[string]fs.FS{"geo": folder}}
}

func TestCities(t *testing.T) {
	t.Parallel()
	world := with(os.DirFS("testdata"))
	world.Examples(t, module)
	tests := []struct{ name, tool, arguments, want string }{
		{"the largest first", "find", `{"name": "SAN", "max": 2}`, `"Santiago"`},
		{"accents", "find", `{"name": "san josé"}`, `"CR"`},
		{"near", "nearest", `{"latitude": 48.8, "longitude": 2.13, "max": 1}`, `[{"name":"Paris","country":"FR","latitude":48.8566,"longitude":2.3522,"population":2103000,"distance_km":17.4}]`},
		{"beyond the date line", "nearest", `{"latitude": -18, "longitude": -179, "max": 1}`, `"Suva"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got, err := world.Call(t, module, test.tool, test.arguments); err != nil || !strings.Contains(got, test.want) {
				t.Errorf("got %s, %v, want %s in it", got, err, test.want)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	table := func(text string) fs.FS { return fstest.MapFS{"cities.csv": {Data: []byte(text)}} }
	tests := []struct {
		name, code string
		folder     fs.FS
	}{
		{"no such city", "not_found", table("name,country,latitude,longitude,population\n")},
		{"no table", "no_table", fstest.MapFS{}},
		{"no number", "bad_table", table("header\nParis,FR,x,2.3,1\n")},
		{"columns", "bad_table", table("header\nParis\n")},
		{"a long line", "bad_table", table(strings.Repeat("x", 1<<17))},
		{"no folder", "bad_table", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got, err := with(test.folder).Call(t, module, "find", `{"name": "Paris"}`); err == nil || toolsrv.AsError(err).Code != test.code {
				t.Errorf("got %s, %v, want the code %s", got, err, test.code)
			}
		})
	}
}

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ lat1, lon1, lat2, lon2, want float64 }{
		{0, 0, 0, 0, 0}, {0, 0, 0, 180, 20015.1}, {90, 0, -90, 0, 20015.1}, {0, 179, 0, -179, 222.4}, {52.52, 13.405, 48.8566, 2.3522, 877.5},
	} {
		if got := distance(test.lat1, test.lon1, test.lat2, test.lon2); math.Abs(got-test.want) > 0.1 {
			t.Errorf("%+v: got %.1f", test, got)
		}
	}
}
