package command_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// passes matches the parts of an answer that differ from run to run: times, durations, sizes of the program, ids, secrets, digests, and the user who
// runs the tests. Everything else is a promise to programs that read it.
var passes = []struct {
	is *regexp.Regexp
	as string
}{
	{regexp.MustCompile(`"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z"`), `"TIME"`},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "DIGEST"},
	{regexp.MustCompile(`tsv_[a-z2-7]{10}_[a-z2-7]{59}`), "SECRET"},
	{regexp.MustCompile(`tsv_[a-z2-7]{10}`), "ID"},
	{regexp.MustCompile(`uid [0-9]+( \([^)]*\))?`), "USER"},
	{regexp.MustCompile(`127\.0\.0\.1:[0-9]+`), "ADDRESS"},
	{regexp.MustCompile(`\b[0-9a-f]{16}\b`), "VERSION"},
	{regexp.MustCompile(`("(?:server": \{\s*"version|request_id|revision)": )"[^"]*"`), `$1"…"`},
	{regexp.MustCompile(`("(?:id|last)": )"[A-Za-z0-9_-]{22}"`), `$1"EVENT"`},
	{regexp.MustCompile(`("run": )"[a-z0-9]+"`), `$1"RUN"`},
	{regexp.MustCompile(`("(?:pid|generation|held|size|bytes|limit|seconds|number|last)": )[0-9.e-]+`), `${1}0`},
	{regexp.MustCompile(`(\{\s*"name": )"[a-z]+"(,\s*"seconds": 0\s*\})(,\s*\{\s*"name": "[a-z]+",\s*"seconds": 0\s*\})*`), `$1"PHASE"$2`},
}

// TestAnswers compares the output of --json with the output that programs rely on: one operator's day, with all commands in order. -update writes the
// expected output again.
func TestAnswers(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("runs commands one after another, so the race detector would only slow it down")
	}
	const (
		more   = "upload = true\n"
		grants = "[[grant]]\nmatch = \"weather/*\"\nkv = \"1MiB\"\nsettings = {units = \"metric\"}\nhttp = [\"https://api.example.com\"]\nsecrets = [\"key\"]\n[secrets]\nfiles = {key = \"key\"}\n"
	)
	m := manage(t, more)
	m.keeps(t, "shop/echo", 1)
	dir := t.TempDir()
	next := testkit.Put(t, dir, "shop.wasm", release(t, "shop", "echo", "2"))
	backup := filepath.Join(dir, "backup.db")
	call := func() {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.url+"/shop/echo", strings.NewReader(`{"item":"tea"}`))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Authorization", "Bearer "+adminToken)
		q.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
	}
	var all strings.Builder
	for _, step := range []struct {
		args  []string
		stdin string
		code  int
		first func() // before it
	}{
		{args: []string{"status"}}, // before the first call, since a call may not be counted yet
		{args: []string{"tools"}, first: call},
		{args: []string{"tools", "--all"}},
		{args: []string{"refused"}},
		{args: []string{"disable", "shop/echo", "weather", "--reason", "it rains"}},
		{args: []string{"switches"}},
		{args: []string{"enable", "shop/wait"}},
		{args: []string{"reset", "*"}},
		{args: []string{"events", "--last", "1"}},
		{args: []string{"slow"}},
		{args: []string{"logs", "--level", "error"}},
		{args: []string{"explain", "team", "shop/echo"}},
		{args: []string{"explain", "team", "weather/now"}, code: 3},
		{args: []string{"put", next}},
		{args: []string{"history", "shop/echo"}, first: func() { m.keeps(t, "shop/echo", 2) }},
		{args: []string{"rollback", "shop/echo", "--reason", "it is wrong"}},
		{args: []string{"history", "shop/echo"}},
		{args: []string{"remove", "shop.wasm"}},
		{args: []string{"history"}},
		{args: []string{"rollback", "shop.wasm"}},
		{args: []string{"reload", "--dry-run"}, first: func() { testkit.Put(t, filepath.Dir(m.config), "toolsrv.toml", managedConfig+more+grants) }},
		{args: []string{"reload"}},
		{args: []string{"tokens", "add", "ci", "--scope", "shop/*", "--expires", "30d", "--rate", "100/min", "--cidr", "192.0.2.0/24"}},
		{args: []string{"tokens", "show", "ci"}},
		{args: []string{"tokens", "scopes", "ci", "weather/now", "metrics"}},
		{args: []string{"reach"}},
		{args: []string{"tokens", "rate", "ci", "--rate", "10/s", "--burst", "20", "--concurrent", "4"}},
		{args: []string{"tokens", "rotate", "ci"}},
		{args: []string{"tokens", "list"}},
		{args: []string{"tokens", "revoke", "ci"}},
		{args: []string{"secrets", "set", "github", "--principal", "issued+ann"}, stdin: "ghp_of-a-caller-7654321"},
		{args: []string{"secrets", "list"}},
		{args: []string{"secrets", "remove", "github", "--principal", "issued+ann"}},
		{args: []string{"kv", "list"}},
		{args: []string{"kv", "erase", "issued+ann"}},
		{args: []string{"self", "--server", m.url}},
		{args: []string{"state", "check", backup}, first: func() { _, _, _ = run("state", "backup", backup, "--config", m.config) }},
		{args: []string{"audit", "--last", "3"}},
		{args: []string{"audit", "verify"}},
	} {
		if step.first != nil {
			step.first()
		}
		args := append(step.args, "--json")
		if !strings.Contains(strings.Join(args, " "), "--server") && args[0] != "state" {
			args = append(args, "--config", m.config)
		}
		code, stdout, stderr := runWith(step.stdin, args...)
		if code != step.code {
			t.Errorf("%q: got %d, %s", step.args, code, stderr)
		}
		all.WriteString("$ toolsrv " + strings.Join(step.args, " ") + " --json\n" + stdout + "\n")
	}
	got := strings.NewReplacer(dir, "/home", filepath.Dir(m.config), "/srv", m.url, "http://ADDRESS").Replace(all.String())
	for _, p := range passes {
		got = p.is.ReplaceAllString(got, p.as)
	}
	file := filepath.Join("testdata", "asking", "answers.txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	wants, gots := strings.Split(string(testkit.Read(t, file)), "\n$ "), strings.Split(got, "\n$ ")
	for i := range max(len(wants), len(gots)) {
		var want, got string
		if i < len(wants) {
			want = wants[i]
		}
		if i < len(gots) {
			got = gots[i]
		}
		if got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}
