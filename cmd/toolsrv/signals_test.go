//go:build unix

package main_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func (s *service) signal(sig os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// waiting begins a call with a token, and returns when its guest is waiting.
func (s *service) waiting(token string) <-chan reply {
	s.t.Helper()
	call := make(chan reply, 1)
	go func() {
		a, _ := s.try(request{method: http.MethodPost, path: "/shop/wait", body: order, token: token})
		call <- a
	}()
	s.waitLine("the guest's word", guestWaits)
	return call
}

// status returns the status of a call of /shop/echo with a token.
func (s *service) status(token string) int {
	s.t.Helper()
	return s.do(request{method: http.MethodPost, path: "/shop/echo", body: order, token: token}).status
}

// TestReload changes the configuration of a running service and tells it so.
func TestReload(t *testing.T) {
	t.Parallel()
	const (
		head  = "[auth]\ntokens = [\"" + token + "\"]\n"
		other = token + "-2"
	)
	dir := site(t, head, map[string][]byte{"shop.wasm": guest(t, "shop", "1.0.0", "echo")})
	config := filepath.Join(dir, "toolsrv.toml")
	s := start(t, dir)
	if got := s.status(token); got != http.StatusOK {
		t.Fatalf("with the first token: %d", got)
	}

	put(t, config, []byte("[auth]\ntokens = [\""+other+"\"]\n"))
	s.signal(syscall.SIGHUP)
	s.eventually("the new token is accepted", func() bool { return s.status(other) == http.StatusOK })
	s.eventually("the old token is refused", func() bool { return s.status(token) == http.StatusUnauthorized })

	put(t, config, []byte(head+"[tools]\ndisabled = [\"shop\"]\n"))
	s.signal(syscall.SIGHUP)
	s.eventually("the namespace is disabled", func() bool { return s.status(token) == http.StatusServiceUnavailable })
	if got := s.listed(); len(got) != 0 {
		t.Errorf("/tools lists %q, which are disabled", got)
	}

	for _, c := range []struct{ name, text, reason string }{
		{"unknown key", head + "[tools]\ndisabeld = []\n", "disabeld"},
		{"no TOML", "[auth\n", "toolsrv.toml"},
		{"a tokens file that does not exist", head + "tokens_file = \"nowhere\"\n", "auth.tokens_file"},
	} {
		put(t, config, []byte(c.text))
		s.signal(syscall.SIGHUP)
		s.waitLine("the reason: "+c.name, func(line map[string]any) bool {
			return line["level"] == "ERROR" && strings.Contains(textOf(line), c.reason)
		})
		if got := s.status(token); got != http.StatusServiceUnavailable {
			t.Errorf("after a configuration with %s: %d, want the old one in force (503)", c.name, got)
		}
	}

	put(t, config, []byte(head+"[tools]\ndirectory = \"elsewhere\"\n"))
	s.signal(syscall.SIGHUP)
	s.eventually("the namespace is enabled again", func() bool { return s.status(token) == http.StatusOK })
	s.waitLine("the warning about a change that needs a restart", func(line map[string]any) bool {
		return line["level"] == "WARN" && line["key"] == "tools.directory"
	})
}

// TestTokensFile checks that the tokens in the file that a flag names override those of the configuration, and that a reload reads the file again.
func TestTokensFile(t *testing.T) {
	t.Parallel()
	dir := site(t, "[auth]\ntokens = [\"of-the-configuration\"]\n", map[string][]byte{"shop.wasm": guest(t, "shop", "1.0.0", "echo")})
	tokens := filepath.Join(dir, "tokens")
	put(t, tokens, []byte("# ours\n\n"+token+"-a\n"+token+"-b\n"))
	s := start(t, dir, "--auth-tokens-file", tokens, "--auth-token", token)
	for bearer, want := range map[string]int{
		token:                  http.StatusOK,
		token + "-a":           http.StatusOK,
		token + "-b":           http.StatusOK,
		"of-the-configuration": http.StatusUnauthorized,
		"# ours":               http.StatusUnauthorized,
	} {
		if got := s.status(bearer); got != want {
			t.Errorf("with token %q: %d, want %d", bearer, got, want)
		}
	}
	put(t, tokens, []byte(token+"-b\n"))
	s.signal(syscall.SIGHUP)
	s.eventually("the removed token lets nobody in", func() bool { return s.status(token+"-a") == http.StatusUnauthorized })
	for _, bearer := range []string{token, token + "-b"} {
		if got := s.status(bearer); got != http.StatusOK {
			t.Errorf("with token %q, which stayed: %d", bearer, got)
		}
	}
}

// TestDrain stops a service while a call runs.
func TestDrain(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			s := start(t, site(t, "", map[string][]byte{"shop.wasm": guest(t, "shop", "1.0.0", guestTools...)}))
			call := s.waiting("")
			for _, each := range []os.Signal{sig, syscall.SIGTERM, syscall.SIGINT} { // at once, as timeout(1) sends its signal twice
				s.signal(each)
			}
			s.waitLog("draining")
			if a := s.get("/readyz"); a.status != http.StatusServiceUnavailable {
				t.Errorf("/readyz during the drain: %d, want 503", a.status)
			}
			if a := s.post("/shop/echo", order); a.status != http.StatusServiceUnavailable || failure(t, a).Code != "not_ready" {
				t.Errorf("a new call during the drain: %d %s, want 503 not_ready", a.status, a.body)
			}
			if a := <-call; a.status != http.StatusOK || a.body != `"waited"` {
				t.Errorf("the running call got %d %s, want 200", a.status, a.body)
			}
			if got := s.exitCode(); got != 0 {
				t.Errorf("exit code %d, want 0", got)
			}
			s.waitLog("stopped")
		})
	}
}

// TestSecondSignal does not wait for a running call.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	s := start(t, site(t, "", map[string][]byte{"shop.wasm": guest(t, "shop", "1.0.0", guestTools...)}))
	cut := make(chan error, 1)
	go func() {
		_, err := s.try(request{method: http.MethodPost, path: "/shop/wait", body: order})
		cut <- err
	}()
	s.waitLine("the guest's word", guestWaits)
	s.signal(syscall.SIGTERM)
	s.waitLog("draining")
	for s.cmd.Process.Signal(syscall.SIGTERM) == nil { // until a signal is late enough to count as a second one
		time.Sleep(10 * time.Millisecond)
	}
	if got := s.exitCode(); got != 1 {
		t.Errorf("exit code %d, want 1", got)
	}
	if err := <-cut; err == nil {
		t.Error("the running call was answered, want it cut off")
	}
}
