package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/client"
	"github.com/toolsrv/toolsrv/internal/admin/door"
	"github.com/toolsrv/toolsrv/internal/admin/socket"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/pagetest"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/auth"
	public "github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/server"
	"github.com/toolsrv/toolsrv/wasmtools/service"
)

var update = flag.Bool("update", false, "write what the commands print into testdata")

// adminToken is the token that TestMain puts into TOOLSRV_TOKEN.
const adminToken = "token-of-an-administrator"

// admins is a verifier that knows the administrator.
type admins struct{}

func (admins) Verify(r *http.Request) (*wasmtools.Principal, error) {
	if r.Header.Get("Authorization") != "Bearer "+adminToken {
		return nil, nil
	}
	p, err := wasmtools.NewPrincipal("ann", wasmtools.OriginToken, "*")
	if err != nil {
		return nil, err
	}
	return p.WithRoles(wasmtools.RoleAdmin)
}

func (admins) Scheme() auth.Scheme {
	return auth.Scheme{Name: "bearer", Description: json.RawMessage(`{"type":"http","scheme":"bearer"}`), Challenge: "Bearer"}
}
func (admins) Principals() []*wasmtools.Principal {
	p, err := wasmtools.NewPrincipal("team", "test", "shop/*")
	if err != nil {
		panic(err)
	}
	return []*wasmtools.Principal{p}
}
func (admins) Open() bool              { return false }
func (admins) Version() uint64         { return 0 }
func (admins) Subscribe(func()) func() { return func() {} }

// A managed is a server that runs in this process, in a folder of its own.
type managed struct {
	config string // the file
	socket string
	url    string
	stop   func()
}

// manage runs a server with the tools of the shop, until the test ends.
func manage(t *testing.T, more string) managed {
	t.Helper()
	if os.Getuid() < 0 {
		t.Skip("this system doesn't say which user connects to a socket")
	}
	dir, err := os.MkdirTemp("", "tsv") // a short path, for the socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	testkit.Put(t, dir, "tools/shop.wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "e2e/guest"), manifestOf("shop", "echo", "refuse", "wait")))
	testkit.Put(t, dir, "tools/weather.wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "e2e/guest"), needy))
	testkit.Put(t, dir, "tools/broken.wasm", "not a module")
	testkit.Put(t, dir, "key", managedSecret)
	m := managed{config: testkit.Put(t, dir, "toolsrv.toml", managedConfig+more)}
	m.url, m.stop = m.start(t)
	c, err := config.Load(m.config)
	if err != nil {
		t.Fatal(err)
	}
	m.socket = socket.Of(c)
	return m
}

// start runs the server until the test ends, or stop is called.
func (m *managed) start(t *testing.T) (url string, stop func()) {
	t.Helper()
	c, err := public.Load(m.config)
	if err != nil {
		t.Fatal(err)
	}
	of, err := service.Open(t.Context(), c, service.Options{Logger: slog.New(slog.NewJSONHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(t.Context(), of, server.Options{Verifiers: []auth.Verifier{admins{}}, Load: func() (*public.Config, error) { return public.Load(m.config) }})
	if err != nil {
		t.Fatal(errors.Join(err, of.Close()))
	}
	url = "http://" + s.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- errors.Join(s.Run(ctx), of.Close()) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	if err := of.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return url, stop
}

// managedSecret is the content of a file that configurations may name.
const managedSecret = "a-secret-of-this-test"

// managedConfig switches a tool off, in line 8.
const managedConfig = `[server]
address = "127.0.0.1:0"

[state]
directory = "kept"

[tools]
disabled = ["shop/wait", {tool = "weather/then", reason = "no forecast"}]

[limits]
concurrency = 8

[admin]
enabled = true
`

// passing matches the parts of an answer that change from moment to moment.
var passing = regexp.MustCompile(`"(since|listed|pid|held|who|generation|version|revision|addresses|running|queued|done|last|until)": ?("[^"]*"|[0-9]+|true|false|\[[^\]]*\])`)

// holders matches the callers with open connections. Which callers have one differs from run to run, too. A client keeps its connection after a
// request, until some test in this process stops a server, which closes all idle connections.
var holders = regexp.MustCompile(`,"by":\[[^\]]*\]`)

// TestThreeWays calls each operation over HTTP, over the socket, and on the command line in both ways: the answers are the same.
func TestThreeWays(t *testing.T) {
	t.Parallel()
	m := manage(t, "")
	eventually(t, "nothing changes by itself any more", func() bool {
		_, logs, _ := run("logs", "--config", m.config)
		return strings.Contains(logs, "listening") && strings.Contains(logs, "all tools are compiled")
	})
	tested := map[string]bool{}
	for _, c := range []struct {
		operation string
		arguments string // JSON
		command   []string
		code      wasmtools.Code // the code of the refusal, or empty
	}{
		{"events", `{"limit":2}`, []string{"--last", "2"}, ""}, // this comes first, because the events report refused requests after a while
		{"events", `{"tool":"shop/*"}`, []string{"--tool", "shop/*"}, ""},
		{"events", `{"tool":"a b"}`, []string{"--tool", "a b"}, wasmtools.CodeInvalidArguments},
		{"status", `{}`, nil, ""},
		{"status", `{"all":true}`, []string{"--all"}, ""},
		{"tools", `{}`, nil, ""},
		{"tools", `{"all":true}`, []string{"--all"}, ""},
		{"tools", `{"pattern":"shop/*","all":true}`, []string{"shop/*", "--all"}, ""},
		{"tools", `{"pattern":"shop/nothing"}`, []string{"shop/nothing"}, wasmtools.CodeNotFound},
		{"tools", `{"pattern":"a b"}`, []string{"a b"}, wasmtools.CodeInvalidArguments},
		{"switches", `{}`, nil, ""},
		{"disable", `{"names":["shop/echo","weather"],"reason":"it rains"}`, []string{"shop/echo", "weather", "--reason", "it rains"}, ""},
		{"disable", `{"names":["shop/*"],"until_restart":true}`, []string{"shop/*", "--until-restart"}, ""},
		{"disable", `{"names":["shop/ecko"]}`, []string{"shop/ecko"}, wasmtools.CodeNotFound},
		{"disable", `{"names":["s*/echo"]}`, []string{"s*/echo"}, wasmtools.CodeInvalidArguments},
		{"disable", `{"names":["shop"],"reason":"\u001b[2J"}`, []string{"shop", "--reason", "\x1b[2J"}, wasmtools.CodeInvalidArguments},
		{"enable", `{"names":["shop/wait"]}`, []string{"shop/wait"}, ""},
		{"enable", `{"names":["shop/echo","shop/nothing"]}`, []string{"shop/echo", "shop/nothing"}, wasmtools.CodeNotFound},
		{"reset", `{"names":["*"]}`, []string{"*"}, ""},
		{"reload", `{"dry_run":true}`, []string{"--dry-run"}, ""},
		{"reload", `{}`, nil, ""},
		{"goroutines", `{}`, nil, ""},
		{"reset", `{"names":["a b"]}`, []string{"a b"}, wasmtools.CodeInvalidArguments},
		{"reach", `{}`, nil, ""},
		{"reach", `{"pattern":"shop/*","principal":"team"}`, []string{"shop/*", "--principal", "team"}, ""},
		{"reach", `{"principal":"mallory"}`, []string{"--principal", "mallory"}, wasmtools.CodeNotFound},
		{"explain", `{"principal":"team","tool":"shop/echo"}`, []string{"team", "shop/echo"}, ""},
		{"explain", `{"principal":"mallory","tool":"shop/echo"}`, []string{"mallory", "shop/echo"}, wasmtools.CodeNotFound},
		{"refused", `{}`, nil, ""},
		{"logs", `{"level":"error"}`, []string{"--level", "error"}, ""},
		{"logs", `{"level":"loud"}`, []string{"--level", "loud"}, wasmtools.CodeInvalidArguments},
		{"logs", `{"tool":"a b"}`, []string{"--tool", "a b"}, wasmtools.CodeInvalidArguments},
		{"top", `{}`, nil, ""},
		{"top", `{"pattern":"a b"}`, []string{"a b"}, wasmtools.CodeInvalidArguments},
		{"slow", `{}`, nil, ""},
		{"slow", `{"pattern":"a b"}`, []string{"a b"}, wasmtools.CodeInvalidArguments},
		{"history", `{}`, nil, ""},
		{"history", `{"path":"shop/nothing"}`, []string{"shop/nothing"}, wasmtools.CodeNotFound},
		{"rollback", `{"path":"shop/nothing"}`, []string{"shop/nothing"}, wasmtools.CodeNotFound},
		{"rollback", `{"path":"shop/echo","version":"xyz"}`, []string{"shop/echo", "xyz"}, wasmtools.CodeInvalidArguments},
		{"remove", `{"name":"shop.wasm"}`, []string{"shop.wasm"}, wasmtools.CodeForbidden},
		{"kv list", `{}`, nil, ""},
		{"kv list", `{"after":"issued+ann/shop"}`, []string{"--after", "issued+ann/shop"}, ""},
		{"kv erase", `{"principal":"issued+nobody"}`, []string{"issued+nobody"}, ""},
		{"kv erase", `{"principal":"nobody"}`, []string{"nobody"}, wasmtools.CodeInvalidArguments},
		{"audit", `{}`, []string{"--all"}, ""},
		{"audit", `{"last":1}`, []string{"--last", "1"}, ""},
		{"audit verify", `{}`, nil, ""},
		{"audit verify", `{"known":["7:x"]}`, []string{"--known", "7:x"}, wasmtools.CodeInvalidArguments},
	} {
		tested[c.operation] = true
		name := c.operation + " " + c.arguments
		over, err := client.OverSocket(m.socket)
		if err != nil {
			t.Fatal(err)
		}
		var arguments map[string]any
		if err := json.Unmarshal([]byte(c.arguments), &arguments); err != nil {
			t.Fatal(err)
		}
		anew := func() { // for each way, the server is in the same state
			t.Helper()
			if strings.HasPrefix(c.operation, "audit") || c.operation == "events" {
				return // the audit has an entry for each change, also for this one
			}
			if _, err := over.Do(t.Context(), "reset", admin.Reset{Names: []string{"*"}}, ""); err != nil {
				t.Fatal(err)
			}
		}
		anew()
		var want string
		answer, err := over.Do(t.Context(), c.operation, arguments, "")
		if answer != nil {
			want = string(answer.Result)
		}
		failed, _ := errors.AsType[*wasmtools.Error](err)
		if (c.code == "") != (err == nil) || c.code != "" && (failed == nil || failed.Code != c.code) {
			t.Errorf("%s over the socket: got %v, want the code %q", name, err, c.code)
		}

		anew()
		body := ask(t, m, admin.Find(c.operation), c.arguments)
		local := admin.Find(c.operation).Local
		if local { // only for the socket, and each answer differs
			if !strings.Contains(body, `"code":"forbidden"`) {
				t.Errorf("%s over HTTP: got %s", name, body)
			}
		} else if c.code == "" && steady(t, body) != steady(t, want) || c.code != "" && !strings.Contains(body, `"code":"`+string(c.code)+`"`) {
			t.Errorf("%s over HTTP: got %s, want %s", name, body, want)
		}

		for _, flags := range [][]string{{"--config", m.config}, {"--server", m.url}} {
			anew()
			args := slices.Concat(strings.Fields(c.operation), c.command, []string{"--json"}, flags)
			code, stdout, stderr := run(args...)
			if local {
				if got := code == 0 && strings.Contains(stdout, "goroutine "); got != (flags[0] == "--config") {
					t.Errorf("%q: got %d, %.200s %s", args, code, stdout, stderr)
				}
			} else if c.code == "" && (code != 0 || stderr != "" || steady(t, stdout) != steady(t, want)) || c.code != "" && (code == 0 || !strings.Contains(stderr, string(c.code))) {
				t.Errorf("%q: got %d, %s %s, want %s", args, code, stdout, stderr, want)
			}
		}
	}
	for _, o := range admin.Operations() {
		if o.Copies() || o.Takes() > 0 {
			continue // these operations use more than JSON: TestStateCommands and TestPut test them
		}
		if !tested[o.Name] && !strings.HasPrefix(o.Name, "tokens ") && !strings.HasPrefix(o.Name, "secrets ") && o.Name != "self" { // TestTokens and TestSecrets test these
			t.Errorf("%s is not tested", o.Name)
		}
	}
}

// ask calls an operation over HTTP, without the client.
func ask(t *testing.T, m managed, o *admin.Operation, arguments string) string {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), o.Method, m.url+door.Path+o.Path(), nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+adminToken)
	if o.Changes() {
		q.Header.Set("Content-Type", "application/json")
		q.Body = io.NopCloser(strings.NewReader(arguments))
	} else {
		query, err := o.Query([]byte(arguments))
		if err != nil {
			t.Fatal(err)
		}
		q.URL.RawQuery = query.Encode()
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// steady returns an answer in a uniform form, without the parts that differ.
func steady(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		t.Fatalf("not JSON: %v: %s", err, text)
	}
	return passing.ReplaceAllString(holders.ReplaceAllString(b.String(), ""), `"$1":…`)
}

// TestShowTools compares the output about tools for people with the expected one. TestAnswers does so for programs.
func TestShowTools(t *testing.T) {
	t.Parallel()
	m := manage(t, "")
	file := filepath.Join("testdata", "asking", "tools.txt")
	got := strings.ReplaceAll(m.must(t, "tools", "--all"), filepath.Dir(m.config), "/srv")
	got = regexp.MustCompile(` {2,}`).ReplaceAllString(got, "  ") // the columns depend on the folder's name
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if want := string(testkit.Read(t, file)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	_, stdout, _ := run("status", "--config", m.config)
	for _, want := range []string{`ready +yes\n`, `tools +5, 2 of them disabled, 1 lacking a grant\n`, `calls +0 running, 0 waiting\n`, `last minute +`, `last hour +`, `broken.wasm +refused +\S+ \S+ +- +\S`} {
		if !regexp.MustCompile(want).MatchString(stdout) {
			t.Errorf("status lacks %s:\n%s", want, stdout)
		}
	}
}

// TestReload checks that a reload changes exactly what the dry run has shown, and changes nothing if the configuration file has changed since.
func TestReload(t *testing.T) {
	t.Parallel()
	m := manage(t, "")
	changed := strings.NewReplacer(`"shop/wait", `, `"shop/echo", `, "concurrency = 8", "concurrency = 7").Replace(managedConfig) + "[[grant]]\nmatch = \"weather/*\"\nkv = \"1MiB\"\nsettings = {units = \"metric\"}\nhttp = [\"https://api.example.com\"]\nsecrets = [\"key\"]\n[secrets]\nfiles = {key = \"key\"}\n"
	testkit.Put(t, filepath.Dir(m.config), "key", "a-secret-of-this-test")
	testkit.Put(t, filepath.Dir(m.config), "toolsrv.toml", changed)
	code, would, stderr := run("reload", "--dry-run", "--config", m.config)
	version := regexp.MustCompile(`version ([0-9a-f]{16})\)`).FindStringSubmatch(would)
	for _, want := range []string{`limit +concurrency: 8 → 7`, `grant +\+weather/\*: `, `enabled +/shop/wait`, `disabled +/shop/echo`, `granted +/weather/now`, `setting +tools.disabled: `} {
		if !regexp.MustCompile(want).MatchString(would) {
			t.Errorf("a dry run lacks %s:\n%s", want, would)
		}
	}
	if code != 0 || stderr != "" || version == nil {
		t.Fatalf("got %d, %s, %s", code, would, stderr)
	}
	if _, tools, _ := run("tools", "/shop/wait", "--all", "--config", m.config); !strings.Contains(tools, "disabled") {
		t.Errorf("a dry run has changed something:\n%s", tools)
	}
	if code, _, stderr := run("reload", "--if-match", "0123456789abcdef", "--config", m.config); code != 23 || !strings.Contains(stderr, version[1]) {
		t.Errorf("another version: got %d, %s", code, stderr)
	}
	code, did, stderr := run("reload", "--if-match", version[1], "--config", m.config)
	if _, rows, _ := strings.Cut(would, "\n"); code != 0 || did != rows {
		t.Errorf("got %d, %s, %s; want %s", code, did, stderr, rows)
	}
	_, tools, _ := run("tools", "--all", "--config", m.config)
	for path, state := range map[string]string{"/shop/wait": "enabled", "/shop/echo": "disabled", "/weather/now": "enabled", "/weather/then": "disabled"} {
		if !regexp.MustCompile(path + ` +` + state + ` `).MatchString(tools) {
			t.Errorf("%s is not %s:\n%s", path, state, tools)
		}
	}
	if code, did, _ := run("reload", "--config", m.config); code != 0 || did != "Nothing changes.\n" {
		t.Errorf("again: got %d, %s", code, did)
	}
	testkit.Put(t, filepath.Dir(m.config), "toolsrv.toml", "[tools]\nmode = 'hidden-word'\n")
	if code, _, stderr := run("reload", "--config", m.config); code == 0 || strings.Contains(stderr, "hidden-word") {
		t.Errorf("a wrong configuration: got %d, %s", code, stderr)
	}
	if code, _, stderr := run("reload", "--server", m.url); code != 3 || !strings.Contains(stderr, "The configuration stays as it was: ") || strings.Contains(stderr, "hidden-word") {
		t.Errorf("a wrong configuration, over HTTP: got %d, %s", code, stderr)
	}
}

// TestAdministrationPage runs the commands of docs/administration.md, and compares what they print with what the page shows.
func TestAdministrationPage(t *testing.T) {
	t.Parallel()
	m := manage(t, "")
	m.keeps(t, "shop/echo", 1)
	steps := 0
	for _, block := range pagetest.Blocks(string(testkit.Read(t, "../../../docs/administration.md"))) {
		if block.Language != "console" {
			continue
		}
		for _, step := range pagetest.Steps(block.Text) {
			steps++
			command, reason, _ := strings.Cut(step[0], " --reason ")
			args := append(strings.Fields(strings.TrimPrefix(command, "toolsrv ")), "--config", m.config)
			if reason != "" {
				args = append(args, "--reason", strings.Trim(reason, "'"))
			}
			code, stdout, stderr := run(args...)
			if code != 0 || stderr != "" || !pagetest.Pattern(step[1]).MatchString(strings.TrimSuffix(stdout, "\n")) {
				t.Errorf("%s: got %d, %s%s\nthe page has\n%s", step[0], code, stdout, stderr, step[1])
			}
		}
	}
	if steps < 5 {
		t.Errorf("the page has %d commands; is it the right one?", steps)
	}
}

// TestAskNobody checks that commands say what to do if no server answers, or if something answers that is not a server of ours.
func TestAskNobody(t *testing.T) {
	t.Parallel()
	m := manage(t, "")
	closed := manage(t, "socket = \"none\"\n")
	empty := t.TempDir()
	other := testkit.Put(t, empty, "other.toml", "[state]\ndirectory = \"kept\"\n")
	none := testkit.Put(t, empty, "none.toml", "")
	long := testkit.Put(t, empty, "long.toml", "[state]\ndirectory = \""+strings.Repeat("x", 120)+"\"\n")
	wrong := testkit.Put(t, empty, "wrong.toml", "[admin]\nsocket = 1\n")
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"another version":         {[]string{"disable", "shop", "--if-match", "99", "--config", m.config}, 23, "it is at version 0, and 99 was expected"},
		"no name":                 {[]string{"disable", "--config", m.config}, 2, "NAME is missing"},
		"an empty name":           {[]string{"reset", "", "--config", m.config}, 2, "a NAME is empty"},
		"no such tool":            {[]string{"disable", "shop/ecko", "--server", m.url}, 22, "did you mean /shop/echo?"},
		"no server":               {[]string{"tools", "--config", other}, 20, "no server answers at " + filepath.Join(empty, "kept", "admin.sock") + ": start it with toolsrv openapi, or name the running server's configuration"},
		"no socket":               {[]string{"status", "--config", closed.config}, 20, "no admin socket"},
		"the default state":       {[]string{"status", "--config", none}, 20, "no server answers at " + filepath.Join(empty, ".toolsrv", "admin.sock")},
		"a path that is too long": {[]string{"status", "--config", long}, 1, "set state.directory or admin.socket to a shorter one"},
		"a wrong configuration":   {[]string{"status", "--config", wrong}, 1, "admin.socket"},
		"no configuration":        {[]string{"status", "--config", filepath.Join(empty, "x.toml")}, 1, "x.toml"},
		"nobody listens":          {[]string{"tools", "--server", "http://127.0.0.1:1"}, 20, "no server answers at http://127.0.0.1:1"},
		"not an address":          {[]string{"tools", "--server", "localhost:8000"}, 2, "write it as https://tools.example.com"},
		"a password":              {[]string{"tools", "--server", "https://ann:x@example.com"}, 2, "write it as https://tools.example.com"},
		"both":                    {[]string{"tools", "--server", m.url, "--config", m.config}, 2, "config"},
		"a path below":            {[]string{"tools", "--server", m.url + "/below"}, 22, "no admin interface over HTTP"},
		"two patterns":            {[]string{"tools", "a", "b", "--config", m.config}, 2, "one pattern"},
	} {
		code, stdout, stderr := run(c.args...)
		if code != c.code || !strings.Contains(stderr, c.want) || stdout != "" {
			t.Errorf("%s: got %d, %q %q; want %d, %q", name, code, stdout, stderr, c.code, c.want)
		}
	}
}

// TestAskHostileServer asks a server that answers with control characters in every text of every answer.
func TestAskHostileServer(t *testing.T) {
	t.Parallel()
	const steers = `\u001b]0;x\u0007\u001b[31m\r\u202e\u009b`
	quoted := `"` + steers + `"`
	token := `{"name":` + quoted + `,"id":` + quoted + `,"scopes":[` + quoted + `],"state":` + quoted + `,"by":` + quoted + `,"version":` + quoted + `}`
	answers := map[string]string{
		"tokens list":   `{"tokens":[` + token + `]}`,
		"tokens show":   token,
		"tokens add":    `{"secret":` + quoted + `,"token":` + token + `,"warnings":[` + quoted + `]}`,
		"tokens revoke": `{"token":` + token + `}`,
		"tokens scopes": `{"token":` + token + `,"warnings":[` + quoted + `]}`,
		"self":          `{"name":` + quoted + `,"origin":` + quoted + `,"scopes":[` + quoted + `],"roles":[` + quoted + `]}`,
		"audit":         `{"entries":[{"action":` + quoted + `,"who":` + quoted + `,"from":` + quoted + `,"target":` + quoted + `,"after":` + quoted + `,"refused":` + quoted + `}]}`,
		"audit verify":  `{"ok":true,"first":1,"last":1,"hash":` + quoted + `}`,
		"reload":        `{"dry_run":true,"version":` + quoted + `,"settings":[` + quoted + `]}`,
		"goroutines":    `{"stacks":` + quoted + `}`,
		"switches":      `{"switches":[{"scope":` + quoted + `,"reason":` + quoted + `,"by":` + quoted + `}]}`,
		"status":        `{"server":{"version":` + quoted + `,"revision":` + quoted + `,"addresses":[` + quoted + `]},"files":[{"file":` + quoted + `,"reason":` + quoted + `}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.ReplaceAll(strings.TrimPrefix(r.URL.Path, door.Path+"/"), "/", " ")
		if r.URL.Query().Get("all") == "true" {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"detail":`+quoted+`,"code":`+quoted+`,"request_id":`+quoted+`}`)
			return
		}
		_, _ = io.WriteString(w, answers[name])
	}))
	defer server.Close()
	more := map[string][]string{"tokens show": {"x"}, "tokens add": {"x"}, "tokens revoke": {"x"}, "tokens scopes": {"x"}, "reload": {"--dry-run"}}
	for name := range answers {
		code, stdout, stderr := run(slices.Concat(strings.Fields(name), more[name], []string{"--server", server.URL})...)
		said := stdout + stderr
		if code != 0 || !strings.Contains(said, `]0;x`) || strings.ContainsAny(said, "\x1b\a\r\u202e\u009b") {
			t.Errorf("%s: got %d, %q", name, code, said)
		}
	}
	code, stdout, stderr := run("tools", "--all", "--server", server.URL)
	if code != 1 || strings.ContainsAny(stdout+stderr, "\x1b\a\r\u202e\u009b") {
		t.Errorf("a refused command: got %d, %q %q", code, stdout, stderr)
	}
}
