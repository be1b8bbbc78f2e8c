package examples_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/wasmtools/server"
	"github.com/toolsrv/toolsrv/wasmtools/service"
)

// granted are the examples that need a grant: those in Go and those in Rust.
var granted = []string{"geo", "trip", "weather", "notes", "signed"}

// The keys for the events service: the tool signs with one, and never sees the other.
const (
	signingKey  = "whsec_a-key-to-sign-with"
	eventsToken = "evt-token-that-no-tool-sees"
)

// TestGranted serves the examples that need a grant from a server with an operator's configuration. The services that they reach are
// real ones, with certificates of an authority of their own.
func TestGranted(t *testing.T) {
	t.Parallel()
	checkGranted(t, func(name string) []byte { return buildGo(t, name) })
}

func buildGo(t *testing.T, name string) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), name+".wasm")
	build(t, "../../examples", "./"+name, file)
	return testkit.Read(t, file)
}

// TestTinyGoGranted is TestGranted for modules that TinyGo builds. A module for wasm-unknown has no files.
func TestTinyGoGranted(t *testing.T) {
	t.Parallel()
	needTinyGo(t)
	checkGranted(t, func(name string) []byte {
		if !slices.Contains(granted, name) {
			return buildGo(t, name)
		}
		return buildTinyGo(t, name, "wasip1")
	})
	for _, name := range []string{"trip", "weather"} {
		describe(t, buildTinyGo(t, name, "wasm-unknown"))
	}
}

// checkGranted serves the examples without grants, and then with them. The function build builds those in Go.
func checkGranted(t *testing.T, build func(name string) []byte) {
	t.Helper()
	folder := t.TempDir()
	api, authority := startAPI(t)
	testkit.Put(t, folder, "ca.pem", authority)
	for name, value := range map[string]string{"signing_key": signingKey, "events_token": eventsToken + "\n"} {
		testkit.Put(t, mkdir(t, folder, "secrets"), name, value)
	}
	testkit.Put(t, mkdir(t, folder, "geo"), "cities.csv", testkit.Read(t, "../../examples/geo/testdata/cities.csv"))
	tools := mkdir(t, folder, "tools")
	for _, name := range []string{"geo", "trip", "weather", "time", "units"} {
		put(t, tools, name, build(name), api)
	}
	for _, name := range []string{"notes", "signed"} {
		put(t, tools, name, testkit.Read(t, "../../examples", name, name+".wasm"), api)
	}
	checkServed(t, folder, api)
}

// checkServed serves the tools in the folder "tools". They reach the services at api.
func checkServed(t *testing.T, folder, api string) {
	t.Helper()
	const tools = "[server]\naddress = \"127.0.0.1:0\"\n[tools]\ndirectory = \"tools\"\n[limits]\ntimeout = \"1m\"\n"
	all := strings.ReplaceAll(tools+`
[[grant]]
match = "weather/*"
http = ["API/v1/"]
private = ["127.0.0.1/32"]
ca = "ca.pem"
settings = {service = "API", units = "imperial"}
[[grant]]
match = "signed/*"
http = ["API/v1/"]
private = ["127.0.0.1/32"]
ca = "ca.pem"
headers = {"API/v1/" = {Authorization = "Bearer ${secret:events_token}"}}
secrets = ["signing_key"]
settings = {service = "API"}
[[grant]]
match = "geo/*"
files = {geo = "geo"}
[[grant]]
match = "trip/*"
tools = ["geo/find", "units/convert", "time/add"]
[[grant]]
match = "notes/*"
kv = "1MiB"
settings = {per_minute = 5}
[secrets]
directory = "secrets"
[state]
directory = "state"
`, "API", api)
	calls := []struct{ path, arguments, want string }{
		{"/weather/now", `{"latitude": 48.86, "longitude": 2.35}`, `200 {"time":"2026-05-01T12:00","temperature":70.5,"wind":6.2,"text":"rain, 70.5 °F, wind 6.2 mph"}`},
		{"/weather/now", `{"latitude": 0, "longitude": 0}`, `502 {"detail":"` + api + ` has answered with status 400","code":"tool_error","error":{"code":"bad_status"}}`},
		{"/signed/send", `{"kind": "order.paid", "data": {"order": 17}}`, `200 {"id":"evt_1"}`},
		{"/signed/send", `{"kind": "reflect"}`, `200 {"id":"[secret]"}`},
		{"/geo/nearest", `{"latitude": 48.8, "longitude": 2.13, "max": 1}`, `200 [{"name":"Paris","country":"FR","latitude":48.8566,"longitude":2.3522,"population":2103000,"distance_km":17.4}]`},
		{"/trip/plan", `{"from": "Paris", "to": "Berlin", "start": "2026-05-01T09:00:00+02:00", "unit": "mi"}`, `200 {"distance":545.2,"unit":"mi","arrival":"2026-05-01T08:06:00Z","text":"Paris to Berlin: 545.2 mi, there at 2026-05-01T08:06:00Z"}`},
		{"/trip/plan", `{"from": "Paris", "to": "Nowhere", "start": "2026-05-01"}`, `400 {"detail":"The argument \"to\": No city's name begins with \"Nowhere\": try less of it, or the English name.","code":"tool_error","error":{"code":"not_found"}}`},
		{"/notes/remove", `{"id": "none"}`, `200 false`},
	}
	t.Run("not granted", func(t *testing.T) {
		s := startServer(t, folder, tools)
		defer s.stop()
		for _, c := range calls {
			if got := s.call(t, c.path, c.arguments); !strings.HasPrefix(got, "503 ") || !strings.Contains(got, `"tool_not_granted"`) {
				t.Errorf("%s: got %s, want 503 tool_not_granted", c.path, got)
			}
		}
		if listed := s.get(t, "/openapi.json"); strings.Contains(listed, "/weather/now") || !strings.Contains(listed, "/units/convert") {
			t.Errorf("the document has tools that were not granted what they need: %s", listed)
		}
	})
	s := startServer(t, folder, all)
	checkArrays(t, strings.TrimPrefix(s.get(t, "/openapi.json"), "200 "), "/weather/now")
	for _, c := range calls {
		if got := s.call(t, c.path, c.arguments); got != c.want {
			t.Errorf("%s %s: got %s\nwant %s", c.path, c.arguments, got, c.want)
		}
	}
	first := s.call(t, "/notes/add", `{"text": "one"}`)
	s.stop()
	again := startServer(t, folder, all)
	defer again.stop()
	var note struct{ ID string }
	if err := json.Unmarshal([]byte(strings.TrimPrefix(first, "200 ")), &note); err != nil {
		t.Fatalf("add: got %s, %v", first, err)
	}
	if got, want := again.call(t, "/notes/list", `{}`), `200 {"notes":[{"id":"`+note.ID+`","text":"one"}],"more":false}`; got != want {
		t.Errorf("after a restart: got %s, want %s", got, want)
	}
	refused := 0
	for range 15 { // the calls may fall into two minutes, each of which allows five
		if strings.HasPrefix(again.call(t, "/notes/add", `{"text": "more"}`), "429 ") {
			refused++
		}
	}
	if refused < 5 {
		t.Errorf("%d of 15 more notes were refused, want all beyond 5 a minute refused", refused)
	}
	for _, secret := range []string{signingKey, eventsToken} {
		if log := s.log.String() + again.log.String(); strings.Contains(log, secret) {
			t.Errorf("the log has the secret %s", secret)
		}
	}
}

// put writes a module with its manifest into the server's folder, with needs for the test's services.
func put(t *testing.T, folder, name string, module []byte, api string) {
	t.Helper()
	to := strings.NewReplacer("https://*.open-meteo.com/", api+"/", "https://events.example.com/v1/", api+"/v1/")
	testkit.Put(t, folder, name+".wasm", sandboxtest.WithManifest(t, module, to.Replace(string(describe(t, module)))))
}

func mkdir(t *testing.T, folder, name string) string {
	t.Helper()
	folder = filepath.Join(folder, name)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	return folder
}

// startAPI starts the services, and returns their address and the certificate of their authority.
func startAPI(t *testing.T) (address string, authority []byte) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/forecast", func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); q.Get("latitude") != "48.8600" || q.Get("wind_speed_unit") != "mph" {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, `{"current": {"time": "2026-05-01T12:00", "temperature_2m": 70.5, "wind_speed_10m": 6.2, "weather_code": 61}}`)
	})
	mux.HandleFunc("POST /v1/events", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		at, signature, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("X-Signature"), "t="), ",v1=")
		mac := hmac.New(sha256.New, []byte(signingKey))
		fmt.Fprintf(mac, "%s.%s", at, body)
		switch {
		case r.Header.Get("Authorization") != "Bearer "+eventsToken || signature != hex.EncodeToString(mac.Sum(nil)):
			w.WriteHeader(http.StatusUnauthorized)
		case strings.Contains(string(body), "reflect"):
			fmt.Fprintf(w, `{"id": %q}`, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		default:
			fmt.Fprint(w, `{"id": "evt_1"}`)
		}
	})
	certificate, authority := certify(t)
	s := httptest.NewUnstartedServer(mux)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL, authority
}

// certify returns a certificate for 127.0.0.1, and the certificate of the authority that has signed it.
func certify(t *testing.T) (certificate tls.Certificate, authority []byte) {
	t.Helper()
	sign := func(template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) []byte {
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	var keys [2]*ecdsa.PrivateKey
	for i := range keys {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		keys[i] = key
	}
	template := func(number int64) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(number), Subject: pkix.Name{CommonName: fmt.Sprint("test ", number)},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true,
		}
	}
	root, leaf := template(1), template(2)
	root.IsCA, root.KeyUsage = true, x509.KeyUsageCertSign
	leaf.IPAddresses, leaf.ExtKeyUsage = []net.IP{net.IPv4(127, 0, 0, 1)}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: sign(root, root, keys[0], keys[0])})
	return tls.Certificate{Certificate: [][]byte{sign(leaf, root, keys[1], keys[0])}, PrivateKey: keys[1]}, authority
}

// A served is a running server.
type served struct {
	url  string
	log  *testkit.Log
	stop func()
}

// startServer starts a server with a configuration in folder, and waits until it has all tools.
func startServer(t *testing.T, folder, configuration string) served {
	t.Helper()
	c, err := config.Load(testkit.Put(t, folder, "toolsrv.toml", configuration))
	if err != nil {
		t.Fatal(err)
	}
	if c.Tools.CacheDir = sandboxtest.CodeDir(); c.Tools.CacheDir == "" {
		c.Tools.CacheDir = filepath.Join(folder, "cache")
	}
	s := served{log: &testkit.Log{}}
	tools, err := core.Open(t.Context(), c, core.Options{Logger: slog.New(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	running, err := server.New(t.Context(), (*service.Service)(tools.Handle()), server.Options{})
	if err != nil {
		t.Fatal(errors.Join(err, tools.Close()))
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- errors.Join(running.Run(ctx), tools.Close()) }()
	stopped := false
	s.stop = func() {
		if cancel(); !stopped {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		stopped = true
	}
	t.Cleanup(s.stop)
	s.url = "http://" + running.Addr().String()
	s.log.Wait(t, `"msg":"ready"`)
	return s
}

// call posts arguments to a tool, and returns the status and the body.
func (s served) call(t *testing.T, path, arguments string) string {
	t.Helper()
	answer, err := http.Post(s.url+path, "application/json", strings.NewReader(arguments))
	return read(t, answer, err)
}

func (s served) get(t *testing.T, path string) string {
	t.Helper()
	answer, err := http.Get(s.url + path)
	return read(t, answer, err)
}

func read(t *testing.T, answer *http.Response, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s", answer.StatusCode, strings.TrimSpace(string(body)))
}
