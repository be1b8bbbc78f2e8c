package examples_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/script"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/enginetest"
)

// grantedScripts are the examples in Python and JavaScript that need a grant, except the tools that run code.
var grantedScripts = []string{"geo-python", "trip-python", "weather-python", "notes-javascript", "signed-javascript"}

// grantsOfScripts are the grants that an operator gives these examples.
const grantsOfScripts = `[server]
address = "127.0.0.1:0"
[tools]
directory = "tools"
[limits]
timeout = "1m"
[[grant]]
match = "weather-python/*"
http = ["API/v1/"]
private = ["127.0.0.1/32"]
ca = "ca.pem"
settings = {service = "API", units = "imperial"}
[[grant]]
match = "signed-javascript/*"
http = ["API/v1/"]
private = ["127.0.0.1/32"]
ca = "ca.pem"
headers = {"API/v1/" = {Authorization = "Bearer ${secret:events_token}"}}
secrets = ["signing_key"]
settings = {service = "API"}
[[grant]]
match = "geo-python/*"
files = {geo = "geo"}
[[grant]]
match = "trip-python/*"
tools = ["geo-python/find", "units/convert", "time/add"]
[[grant]]
match = "notes-javascript/*"
kv = "1MiB"
settings = {per_minute = 5}
[[grant]]
match = "code/python-tools"
tools = ["units/convert", "time/*", "math/add"]
[[grant]]
match = "code/javascript-tools"
tools = ["units/convert", "time/*", "math/add"]
[secrets]
directory = "secrets"
[state]
directory = "state"
`

// TestGrantedScripts serves the examples in Python and JavaScript that need a grant, as TestGranted serves those in Go and Rust.
func TestGrantedScripts(t *testing.T) {
	t.Parallel()
	enginetest.Need(t, "python")
	enginetest.Need(t, "javascript")
	if _, err := os.Stat("../../examples/node_modules"); err != nil {
		t.Skip("there are no packages of npm for the examples: make examples-npm installs them")
	}
	folder := t.TempDir()
	api, authority := startAPI(t)
	testkit.Put(t, folder, "ca.pem", authority)
	for name, value := range map[string]string{"signing_key": signingKey, "events_token": eventsToken + "\n"} {
		testkit.Put(t, mkdir(t, folder, "secrets"), name, value)
	}
	testkit.Put(t, mkdir(t, folder, "geo"), "cities.csv", testkit.Read(t, "../../examples/geo-python/testdata/cities.csv"))
	tools := mkdir(t, folder, "tools")
	for _, name := range []string{"math", "time", "units"} {
		put(t, tools, name, buildGo(t, name), api) // with its manifest, so that the server is ready without compiling the file
	}
	for _, name := range append([]string{"code-python", "code-javascript"}, grantedScripts...) {
		source := filepath.Join("../../examples", name, strings.ReplaceAll(name, "-", "_"))
		if source += ".py"; strings.HasSuffix(name, "javascript") {
			source = strings.TrimSuffix(source, ".py") + ".js"
		}
		module, _, err := script.Build(t.Context(), source, script.Options{})
		if err != nil {
			t.Fatal(err)
		}
		put(t, tools, name, module, api)
	}
	s := startServer(t, folder, strings.ReplaceAll(grantsOfScripts, "API", api))
	defer s.stop()
	paris := `{"name":"Paris","country":"FR","latitude":48.8566,"longitude":2.3522,"population":2103000`
	trip := `{"start_city": "Paris", "end_city": %q, "start": "2026-05-01T09:00:00+02:00", "unit": "mi"}`
	sum := `{"code": %q, "input": [5, 10]}`
	for _, c := range []struct{ path, arguments, want string }{
		{"/weather-python/now", `{"latitude": 48.86, "longitude": 2.35}`, `200 {"time":"2026-05-01T12:00","temperature":70.5,"wind":6.2,"text":"rain, 70.5 °F, wind 6.2 mph"}`},
		{"/weather-python/now", `{"latitude": 0, "longitude": 0}`, `502 {"detail":"The weather service answers with the status 400.","code":"tool_error","error":{"code":"bad_status"}}`},
		{"/signed-javascript/send", `{"kind": "order.paid", "data": {"order": 17}}`, `200 {"id":"evt_1"}`},
		{"/signed-javascript/send", `{"kind": "reflect"}`, `200 {"id":"[secret]"}`},
		{"/geo-python/find", `{"name": "paris"}`, "200 [" + paris + "}]"},
		{"/geo-python/nearest", `{"latitude": 48.8, "longitude": 2.13, "max": 1}`, "200 [" + paris + `,"distance_km":17.4}]`},
		{"/trip-python/plan", fmt.Sprintf(trip, "Berlin"), `200 {"distance":545.2,"unit":"mi","arrival":"2026-05-01T08:06:00Z","text":"Paris to Berlin: 545.2 mi, there at 2026-05-01T08:06:00Z"}`},
		{"/trip-python/plan", fmt.Sprintf(trip, "Nowhere"), `400 {"detail":"The argument \"end_city\": No city's name begins with \"Nowhere\": try less of it, or the English name.","code":"tool_error","error":{"code":"not_found"}}`},
		{"/notes-javascript/remove", `{"id": "none"}`, "200 false"},
		{"/code/python-tools", fmt.Sprintf(sum, "round(sum(tools.call('units/convert', {'value': n, 'from': 'km', 'to': 'mi'})['value'] for n in input), 1)"), `200 {"result":9.3,"stdout":"","error":null}`},
		{"/code/javascript-tools", fmt.Sprintf(sum, "let sum = 0; for (const value of input) sum += (await tools.call('units/convert', { value, from: 'km', to: 'mi' })).value; sum.toFixed(1)"), `200 {"result":"9.3","stdout":"","error":null}`},
		{"/code/javascript-tools", fmt.Sprintf(sum, "await tools.call('geo-python/find', { name: 'Paris' }).catch((e) => e.code)"), `200 {"result":"not_granted","stdout":"","error":null}`},
		{"/code/javascript", fmt.Sprintf(sum, "await fetch('https://example.com').catch((e) => e.code)"), `200 {"result":"not_granted","stdout":"","error":null}`},
		{"/code/python", fmt.Sprintf(sum, "from toolsrv import Failure, tools\ntry:\n    tools.call('math/add', a=1, b=2)\nexcept Failure as e:\n    code = e.code\ncode"), `200 {"result":"not_granted","stdout":"","error":null}`},
	} {
		if got := s.call(t, c.path, c.arguments); got != c.want {
			t.Errorf("%s %s: got %s\nwant %s", c.path, c.arguments, got, c.want)
		}
	}
	checkNotes(t, s)
	for _, secret := range []string{signingKey, eventsToken} {
		if strings.Contains(s.log.String(), secret) {
			t.Errorf("the log has the secret %s", secret)
		}
	}
}

// checkNotes adds notes until no more are allowed, and lists them.
func checkNotes(t *testing.T, s served) {
	t.Helper()
	added, refused := 0, 0
	for range 15 { // the calls may fall into two minutes, each of which allows five
		if strings.HasPrefix(s.call(t, "/notes-javascript/add", `{"text": "more"}`), "429 ") {
			refused++
		} else {
			added++
		}
	}
	var page struct{ Notes []struct{ ID, Text string } }
	got := s.call(t, "/notes-javascript/list", `{"limit": 100}`)
	if err := json.Unmarshal([]byte(strings.TrimPrefix(got, "200 ")), &page); err != nil || refused < 5 || len(page.Notes) != added {
		t.Errorf("%d notes were added and %d refused, and the list is %s (%v)", added, refused, got, err)
	}
}
