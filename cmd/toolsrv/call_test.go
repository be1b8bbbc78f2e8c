package main_test

import (
	"bytes"
	"errors"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestCallIsTheServers checks that `toolsrv call` prints exactly what the service answers with the same configuration: results and errors, to the
// byte.
func TestCallIsTheServers(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("starts processes one after another, so the race detector would only slow it down")
	}
	dir := site(t, errorsConfig, map[string][]byte{
		"shop.wasm":   guest(t, "shop", "1.0.0", guestTools...),
		"frugal.wasm": guest(t, "frugal", "1.0.0", guestTools...),
		"a/b/in.wasm": guest(t, "", "", "echo"), // the folder is the namespace
	})
	s := start(t, dir)
	for _, c := range []struct {
		file, path, body string
		code             int
	}{
		{"shop", "/shop/echo", order, 0},
		{"shop", "/shop/echo", ` { "item" : "tea" } `, 0}, // a default is filled in
		{"a/b/in", "/a/b/echo", order, 0},
		{"shop", "/shop/echo", `{"count":0,"more":1}`, 3},
		{"shop", "/shop/echo", `{"item":"tea","item":"tea"}`, 3},
		{"shop", "/shop/echo", "{\"item\":\"\xff\"}", 3},
		{"shop", "/shop/echo", `[1]`, 3},
		{"shop", "/shop/echo", "", 3},
		{"shop", "/shop/refuse", order, 4},
		{"shop", "/shop/reject", order, 4},
		{"shop", "/shop/trap", order, 5},
		{"shop", "/shop/garble", order, 6},
		{"shop", "/shop/silent", order, 6},
		{"shop", "/shop/spin", order, 7},
		{"frugal", "/frugal/spin", order, 8},
		{"shop", "/shop/grow", order, 9},
		{"shop", "/shop/recurse", order, 10},
		{"frugal", "/frugal/recurse", order, 10},
		{"shop", "/shop/echo", `{"item":"` + strings.Repeat("x", 1<<10) + `"}`, 11},
	} {
		t.Run(c.path+" "+c.body[:min(len(c.body), 30)], func(t *testing.T) {
			t.Parallel()
			answer := s.do(request{method: http.MethodPost, path: c.path, body: c.body, token: token})
			cmd := command("call", "--json", "--config", filepath.Join(dir, "toolsrv.toml"), filepath.Join(dir, "tools", c.file+".wasm"), c.path, "-")
			cmd.Stdin = strings.NewReader(c.body)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			code := 0
			if err := cmd.Run(); err != nil {
				var exit *exec.ExitError
				if !errors.As(err, &exit) {
					t.Fatal(err)
				}
				code = exit.ExitCode()
			}
			got, other := stdout.String(), stderr.String()
			if c.code != 0 {
				got, other = other, got
			}
			if code != c.code || strings.TrimSuffix(got, "\n") != strings.TrimSuffix(answer.body, "\n") || other != "" {
				t.Errorf("exit code %d, standard output %q, standard error %q; want %d, and what the service answers: %d %s",
					code, stdout.String(), stderr.String(), c.code, answer.status, answer.body)
			}
		})
	}
}
