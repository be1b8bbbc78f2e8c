//go:build unix

package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// misplaced is a secret that an operator has written in a wrong place.
const misplaced = "sk_live_51H8mN2eZvKYlo2C0"

// TestMisplacedSecrets writes a secret into all the wrong places of a configuration, checks it, starts a server with it, and lets a running server
// read it: nothing shows the secret. Each message names its place instead.
// Proves: Secrets stay secret
func TestMisplacedSecrets(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: not with -short")
	}
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("starts 130 processes one after another, in which the race detector would find nothing new: not with -race")
	}
	grant := func(text string) string { return "[[grant]]\nmatch = 'shop/*'\nhttp = ['https://a.example']\n" + text }
	cases := map[string]string{
		"a key":                         "SECRET = ''",
		"a key in auth":                 "[auth]\nSECRET = ''",
		"a key with a dot":              "[auth]\ntokens.SECRET = 1",
		"a quoted key":                  "[auth]\n'SECRET/+=' = ''",
		"a table":                       "[SECRET]\na = 1",
		"an array of tables":            "[[SECRET]]\na = 1",
		"a key given twice":             "[auth]\nSECRET = 1\nSECRET = 2",
		"a table given twice":           "[SECRET]\n[SECRET]",
		"a key without a value":         "[auth]\nSECRET",
		"a bare value":                  "[auth]\ntokens_file = SECRET",
		"a string without an end":       "[auth]\ntokens = ['SECRET",
		"a long key":                    "[auth]\n" + strings.Repeat("a", 250) + ".SECRET = 1",
		"a tokens file":                 "[auth]\ntokens_file = 'SECRET'",
		"a tokens file with slashes":    "[auth]\ntokens_file = 'SECRET/a+b=='",
		"a list as a string":            "[auth]\ntokens = 'SECRET'",
		"required":                      "[auth]\nrequired = 'SECRET'",
		"an address":                    "[server]\naddress = 'SECRET'",
		"a public URL":                  "[server]\npublic_url = 'SECRET'",
		"a password in a public URL":    "[server]\npublic_url = 'https://me:SECRET@a.example'",
		"a host":                        "[server]\nhosts = ['https://me:SECRET@a.example']",
		"an origin":                     "[server]\ncors_origins = ['https://me:SECRET@a.example']",
		"a proxy":                       "[server]\ntrusted_proxies = ['SECRET']",
		"a header of proxies":           "[server]\nproxy_header = 'SECRET'",
		"memory":                        "[server]\nmemory = 'SECRET'",
		"a mode":                        "[tools]\nmode = 'SECRET'",
		"an entry":                      "[tools]\ndisabled = ['SECRET*']",
		"an entry that matches no tool": "[tools]\ndisabled = ['SECRET']",
		"a tool in a table":             "[tools]\ndisabled = [{tool = 'SECRET*'}]",
		"a key in an entry":             "[tools]\ndisabled = [{SECRET = 'a'}]",
		"search":                        "[mcp]\nsearch = 'SECRET'",
		"a time":                        "[limits]\ntimeout = 'SECRET'",
		"a size":                        "[limits]\nmemory = 'SECRET'",
		"the match of an override":      "[[override]]\nmatch = 'SECRET'",
		"a wrong match":                 "[[override]]\nmatch = 'SECRET//'",
		"the match of a grant":          "[[grant]]\nmatch = 'SECRET'\nkv = '1MiB'",
		"a service":                     "[[grant]]\nmatch = 'shop/*'\nhttp = ['SECRET']",
		"a password in a service":       "[[grant]]\nmatch = 'shop/*'\nhttp = ['https://me:SECRET@a.example']",
		"a service that no tool needs":  "[[grant]]\nmatch = 'shop/*'\nhttp = ['https://a.example/SECRET/']",
		"a password in headers":         grant("headers = {'https://me:SECRET@a.example' = {A = 'b'}}"),
		"the origin of headers":         grant("headers = {'https://b.example/SECRET/' = {A = 'b'}}"),
		"a header's name":               grant("headers = {'https://a.example' = {'SECRET:' = 'Authorization'}}"),
		"a header's name with a word":   grant("headers = {'https://a.example' = {'tokenSECRET' = 'Authorization'}}"),
		"a header's value":              grant("headers = {'https://a.example' = {Authorization = 'Bearer SECRET'}}"),
		"a header's wrong value":        grant("headers = {'https://a.example' = {Authorization = \"Bearer SECRET\\n\"}}"),
		"a template":                    grant("headers = {'https://a.example' = {Authorization = 'Bearer ${SECRET}'}}"),
		"the name of a secret":          grant("headers = {'https://a.example' = {Authorization = 'Bearer ${secret:SECRET}'}}"),
		"an authority":                  grant("ca = 'SECRET'"),
		"a private range":               grant("private = ['SECRET']"),
		"a folder's name":               grant("files = {'SECRET' = 'nowhere'}"),
		"a wrong folder's name":         grant("files = {'SECRET/' = 'nowhere'}"),
		"a folder":                      grant("files = {geo = 'SECRET'}"),
		"a visible secret":              grant("secrets = ['SECRET']"),
		"a wrong visible secret":        grant("secrets = ['SECRET/']"),
		"a tool to call":                grant("tools = ['SECRET']"),
		"a setting":                     grant("settings = {SECRET = 1979-05-27}"),
		"a variable":                    "[secrets]\nenvironment = {key = 'SECRET'}",
		"a wrong variable":              "[secrets]\nenvironment = {key = 'SECRET=='}",
		"a secret's name":               "[secrets]\nenvironment = {SECRET = 'NO_SUCH_VARIABLE'}",
		"a secret's wrong name":         "[secrets]\nenvironment = {'SECRET/' = 'NO_SUCH_VARIABLE'}",
		"a secret's file":               "[secrets]\nfiles = {key = 'SECRET'}",
		"a secret's name, for a file":   "[secrets]\nfiles = {SECRET = 'nowhere'}",
		"a secret as a key":             "[secrets]\nkey = 'SECRET'",
		"the directory of secrets":      "[secrets]\ndirectory = 'SECRET'",
	}
	running := start(t, site(t, "[auth]\ntokens = ['"+token+"']\n", map[string][]byte{"shop.wasm": guest(t, "shop", "1.0.0", "echo")}))
	served := filepath.Dir(running.cmd.Args[len(running.cmd.Args)-3])
	for name, text := range cases {
		text = strings.ReplaceAll(text, "SECRET", misplaced)
		if !strings.Contains(text, "[auth]") {
			text += "\n[auth]\ntokens = ['" + token + "']\n"
		}
		dir := site(t, text, map[string][]byte{"shop.wasm": guest(t, "shop", "1.0.0", "echo")})
		file := filepath.Join(dir, "toolsrv.toml")
		shown := func(how string, output []byte) {
			t.Helper()
			if strings.Contains(string(output), misplaced) {
				t.Errorf("%s: %s shows it: %s", name, how, output)
			}
		}
		output, err := command("check", "--config", file).CombinedOutput()
		shown("check", output)
		if len(output) == 0 {
			t.Errorf("%s: check says nothing, %v", name, err)
		}
		output, _ = command("check", "--json", "--config", file).CombinedOutput()
		shown("check --json", output)

		put(t, filepath.Join(served, "toolsrv.toml"), []byte(text))
		from := len(running.log.all())
		running.signal(syscall.SIGHUP)
		running.eventually("it was read: "+name, func() bool {
			lines, _ := running.log.from(from)
			all := strings.Join(lines, "\n")
			return strings.Contains(all, "configuration reloaded") || strings.Contains(all, "the configuration stays as it was")
		})
		if err == nil {
			continue // without an error, a server would run
		}
		cmd := command("openapi", "--config", file, "--address", "127.0.0.1:0")
		out, stop := os.CreateTemp(t.TempDir(), "out")
		if stop != nil {
			t.Fatal(stop)
		}
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		running.eventually("a server was started: "+name, func() bool {
			output, _ = os.ReadFile(out.Name())
			select {
			case <-ended:
				return true
			default:
				return strings.Contains(string(output), `"ready"`)
			}
		})
		_ = cmd.Process.Kill()
		<-ended
		output, _ = os.ReadFile(out.Name())
		shown("the start", output)
	}
	running.signal(syscall.SIGTERM)
	running.exitCode()
	if all := strings.Join(running.log.all(), "\n"); strings.Contains(all, misplaced) {
		for _, line := range running.log.all() {
			if strings.Contains(line, misplaced) {
				t.Errorf("the log of a running server shows it: %s", line)
			}
		}
	}
}
