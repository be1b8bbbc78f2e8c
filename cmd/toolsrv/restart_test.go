//go:build unix

package main_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/certtest"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
)

// TestRestartLosesNothing restarts a service in place several times, while some clients keep their connections and others open one for each call.
// Proves: Clients keep nobody out
func TestRestartLosesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: not with -short")
	}
	t.Parallel()
	dir := site(t, "", map[string][]byte{"shop.wasm": guest(t, "shop", "1.0.0", guestTools...)})
	s := start(t, dir)
	pid := s.cmd.Process.Pid

	var answered atomic.Int64
	var clients sync.WaitGroup
	stop := make(chan struct{})
	for i := range 8 {
		transport := &http.Transport{DisableKeepAlives: i%2 == 0}
		client := &http.Client{Transport: transport, Timeout: patience}
		clients.Go(func() {
			defer transport.CloseIdleConnections()
			for {
				select {
				case <-stop:
					return
				default:
				}
				// A body that can't be read twice, so that the client does not try again by itself.
				res, err := client.Post(s.url+"/shop/echo", "application/json", io.MultiReader(strings.NewReader(order)))
				if err != nil {
					t.Errorf("a call was lost: %v", err)
					return
				}
				body, err := io.ReadAll(res.Body)
				_ = res.Body.Close()
				if err != nil || res.StatusCode != http.StatusOK {
					t.Errorf("a call got %d %s (%v), want 200", res.StatusCode, body, err)
					return
				}
				answered.Add(1)
			}
		})
	}
	more := func(what string) {
		before := answered.Load()
		s.eventually(what, func() bool { return answered.Load() > before+100 || t.Failed() })
	}
	for n := range 3 {
		more("calls are answered")
		s.signal(syscall.SIGUSR2)
		s.waitCount("listening", n+2)
	}
	more("calls are answered after the last restart")
	close(stop)
	clients.Wait()
	t.Logf("%d calls", answered.Load())
	if got := s.cmd.Process.Pid; got != pid {
		t.Errorf("process %d, want %d", got, pid)
	}
	s.signal(syscall.SIGTERM)
	if got := s.exitCode(); got != 0 {
		t.Errorf("exit code %d, want 0", got)
	}
}

// TestRestartWaits checks that a running call gets its answer, and that a new call waits until then.
func TestRestartWaits(t *testing.T) {
	t.Parallel()
	s := start(t, site(t, "", map[string][]byte{"shop.wasm": guest(t, "shop", "1.0.0", guestTools...)}))
	call := s.waiting("")
	s.signal(syscall.SIGUSR2)
	s.waitLog("handing over")
	if a := s.get("/readyz"); a.status != http.StatusOK {
		t.Errorf("/readyz while the server hands over: %d, want 200", a.status)
	}
	if a := s.post("/shop/echo", order); a.status != http.StatusOK {
		t.Errorf("a new call: %d %s, want 200", a.status, a.body)
	}
	if a := <-call; a.status != http.StatusOK || a.body != `"waited"` {
		t.Errorf("the running call got %d %s, want 200", a.status, a.body)
	}
	s.waitCount("listening", 2)
	s.waitCount("ready", 2)
	if a := s.post("/shop/echo", order); a.status != http.StatusOK {
		t.Errorf("a call afterwards: %d %s, want 200", a.status, a.body)
	}
}

// TestRestartRefused checks that a service continues as before if the next one could not start.
func TestRestartRefused(t *testing.T) {
	t.Parallel()
	dir := site(t, "", map[string][]byte{"shop.wasm": guest(t, "shop", "1.0.0", "echo")})
	content, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "toolsrv")
	put(t, program, content)
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := command("openapi", "--config", filepath.Join(dir, "toolsrv.toml"), "--address", "127.0.0.1:0")
	cmd.Path = program
	s := run(t, cmd, false)

	refused := func(reason string) {
		t.Helper()
		s.signal(syscall.SIGUSR2)
		s.waitLine("the reason "+reason, func(line map[string]any) bool {
			return line["level"] == "ERROR" && line["msg"] == "the server goes on as it was" && strings.Contains(textOf(line), reason)
		})
		if a := s.post("/shop/echo", order); a.status != http.StatusOK {
			t.Errorf("after %s: %d, want 200", reason, a.status)
		}
	}
	put(t, filepath.Join(dir, "toolsrv.toml"), []byte("[tools]\ndisabeld = []\n"))
	refused("disabeld")
	put(t, filepath.Join(dir, "toolsrv.toml"), []byte("[tools]\ndirectory = \"elsewhere\"\n"))
	refused("elsewhere")
	put(t, filepath.Join(dir, "toolsrv.toml"), []byte("[secrets]\nfiles = {key = \"nowhere\"}\n")) // this is found only when the grants are made
	refused("secret")
	// Settings that a reload leaves for a restart are tried, too. Otherwise only the next process would find a mistake in them, when there is no way
	// back.
	put(t, filepath.Join(dir, "toolsrv.toml"), []byte("[tools]\ndirectory = \"tools\"\n[[source]]\noci = \"127.0.0.1:1/acme/csv\"\ntag = \"1\"\n[[source.signer]]\nkey = \"nowhere.pub\"\n"))
	refused("nowhere.pub")
	put(t, filepath.Join(dir, "toolsrv.toml"), []byte("[tools]\ndirectory = \"tools\"\n[[source]]\noci = \"127.0.0.1:1/acme/csv\"\ntag = \"1\"\nca = \"nowhere.pem\"\n"))
	refused("nowhere.pem")
	put(t, filepath.Join(dir, "toolsrv.toml"), []byte("[admin]\nsocket = \"nowhere/admin.sock\"\n"))
	refused("nowhere")
	put(t, filepath.Join(dir, "toolsrv.toml"), nil)
	for wrong, reason := range map[string]string{
		strings.Repeat("half a program ", 9): program + " version: fork/exec", // a file that the system can't execute
		"#!/bin/sh\nexit 3\n":                "exit status 3",
		"#!/bin/sh\necho another program\n":  "another program",
		"#!/bin/sh\n":                        "it does not answer as toolsrv does",
	} {
		put(t, program, []byte(wrong))
		if err := os.Chmod(program, 0o755); err != nil {
			t.Fatal(err)
		}
		refused(reason)
	}
	put(t, program, content)
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	s.signal(syscall.SIGUSR2)
	s.waitCount("listening", 2)
	s.waitCount("ready", 2)
	if a := s.post("/shop/echo", order); a.status != http.StatusOK {
		t.Errorf("after the program was restored: %d, want 200", a.status)
	}
}

// TestRestartWithoutState checks that a service that can't open its state again continues without it, since other tools need no state.
func TestRestartWithoutState(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"the same address", "a new address"} {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			dir, s := keepingSite(t)
			state := filepath.Join(dir, "state", "state.db")
			if err := os.Remove(state); err != nil {
				t.Fatal(err)
			}
			put(t, state, []byte("not a state"))
			if address == "a new address" {
				config := filepath.Join(dir, "toolsrv.toml")
				text, err := os.ReadFile(config)
				if err != nil {
					t.Fatal(err)
				}
				put(t, config, bytes.Replace(text, []byte("127.0.0.1:0"), []byte("localhost:0"), 1))
			}
			s.signal(syscall.SIGUSR2)
			s.waitCount("listening", 2)
			s.waitLine("the report that the state is lost", func(line map[string]any) bool {
				return line["level"] == "ERROR" && line["msg"] == "this process has lost the state, so tools get errors" && strings.Contains(textOf(line), "state.db is not a state")
			})
			if address == "a new address" {
				return // only the log names the file
			}
			s.waitCount("all tools are compiled", 2)
			if a := s.get("/readyz"); a.status != http.StatusOK || !strings.Contains(a.body, `"state":"unavailable"`) {
				t.Errorf("/readyz: %d %s, want 200 and that the state is not available", a.status, a.body)
			}
			if a := s.post("/a/get", "{}"); !strings.Contains(a.body, `"code":"unavailable"`) {
				t.Errorf("a tool that keeps values: %d %s, want unavailable", a.status, a.body)
			}
			if a := s.post("/shop/echo", order); a.status != http.StatusOK {
				t.Errorf("a tool that keeps no values: %d %s, want 200", a.status, a.body)
			}
		})
	}
}

// TestRestartOtherState changes the directory of the state to one that can't be used, and then to one that can be.
func TestRestartOtherState(t *testing.T) {
	t.Parallel()
	dir, s := keepingSite(t)
	config := filepath.Join(dir, "toolsrv.toml")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	for name, prepare := range map[string]func(other string) error{
		"anybody's": func(other string) error { return errors.Join(os.Mkdir(other, 0o777), os.Chmod(other, 0o777)) },
		"a file":    func(other string) error { return os.WriteFile(other, nil, 0o600) },
		"damaged": func(other string) error {
			return errors.Join(os.Mkdir(other, 0o700), os.WriteFile(filepath.Join(other, "state.db"), []byte("not a state"), 0o600))
		},
	} {
		if err := prepare(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		put(t, config, bytes.Replace(text, []byte(`"state"`), []byte(`"`+name+`"`), 1))
		s.signal(syscall.SIGUSR2)
		s.waitLine("the reason, "+name, func(line map[string]any) bool {
			return line["level"] == "ERROR" && line["msg"] == "the server goes on as it was" && strings.Contains(textOf(line), "state.directory") && strings.Contains(textOf(line), name)
		})
		if a := s.post("/a/get", "{}"); a.status != http.StatusOK || a.body != "116" {
			t.Errorf("%s: what was kept is %d %s, want 200 116", name, a.status, a.body)
		}
	}
	for i, same := range []string{`"./state"`, `"new"`} {
		put(t, config, bytes.Replace(text, []byte(`"state"`), []byte(same), 1))
		s.signal(syscall.SIGUSR2)
		s.waitCount("listening", i+2)
		s.waitCount("ready", i+2)
		if a := s.post("/a/get", "{}"); a.status != http.StatusOK || a.body != map[int]string{0: "116", 1: "0"}[i] {
			t.Errorf("%s: what was kept is %d %s", same, a.status, a.body)
		}
	}
}

// keepingSite starts a service in which a tool has kept something.
func keepingSite(t *testing.T) (dir string, s *service) {
	const manifest = `{"abi":1,"namespace":"a","needs":{"kv":true},"tools":[{"name":"get","description":"Reads.","parameters":{"type":"object"}},
		{"name":"gets","description":"Reads often.","parameters":{"type":"object"}},{"name":"set","description":"Keeps.","parameters":{"type":"object"}}]}`
	dir = site(t, "[server]\naddress = \"127.0.0.1:0\"\n[state]\ndirectory = \"state\"\n[[grant]]\nmatch = \"a/*\"\nkv = \"1MiB\"\n", map[string][]byte{
		"shop.wasm": guest(t, "shop", "1.0.0", "echo"),
		"a.wasm":    sandboxtest.WithManifest(t, testkit.Fixture(t, "capability/kv"), manifest),
	})
	s = run(t, command("openapi", "--config", filepath.Join(dir, "toolsrv.toml")), false)
	s.waitCount("ready", 1)
	if a := s.post("/a/set", "{}"); a.status != http.StatusOK {
		t.Fatalf("/a/set: %d %s", a.status, a.body)
	}
	return dir, s
}

// TestRestartFindsProgram replaces the program at the path with which a service was started, in several ways. A restart runs the program that is
// there now.
func TestRestartFindsProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: not with -short")
	}
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("starts processes one after another, so the race detector would only slow it down")
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write := func(path string) {
		t.Helper()
		must(os.MkdirAll(filepath.Dir(path), 0o755))
		must(os.WriteFile(path, content, 0o755))
	}
	for _, c := range []struct {
		name    string
		program string // below a folder
		argv0   string // the name with which it is started; empty means the same
		replace func(dir string)
		runs    string // the program that runs after the restart
	}{
		{"moved aside", "toolsrv", "", func(dir string) {
			must(os.Rename(dir+"/toolsrv", dir+"/toolsrv.old"))
			write(dir + "/toolsrv")
		}, "toolsrv"},
		{"a link moved", "current/toolsrv", "", func(dir string) {
			must(os.Symlink("v2", dir+"/next"))
			must(os.Rename(dir+"/next", dir+"/current"))
		}, "v2/toolsrv"},
		{"found in PATH", "v1/toolsrv", "toolsrv", func(dir string) {
			must(os.Rename(dir+"/v1/toolsrv", dir+"/v1/toolsrv.old"))
			write(dir + "/v1/toolsrv")
		}, "v1/toolsrv"},
		{"under another name", "v1/toolsrv", "some service", func(string) {}, "v1/toolsrv"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, err := filepath.EvalSymlinks(t.TempDir())
			must(err)
			for _, path := range []string{"/toolsrv", "/v1/toolsrv", "/v2/toolsrv"} {
				write(dir + path)
			}
			must(os.Symlink("v1", dir+"/current"))
			served := site(t, "", map[string][]byte{"shop.wasm": guest(t, "shop", "1.0.0", "echo")})
			cmd := command("openapi", "--config", filepath.Join(served, "toolsrv.toml"), "--address", "127.0.0.1:0")
			cmd.Path = filepath.Join(dir, c.program)
			cmd.Args[0] = cmd.Path
			if c.argv0 != "" {
				cmd.Args[0] = c.argv0
				cmd.Env = append(cmd.Env, "PATH="+filepath.Dir(cmd.Path))
			}
			s := run(t, cmd, false)
			c.replace(dir)
			s.signal(syscall.SIGUSR2)
			s.waitCount("listening", 2)
			exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", cmd.Process.Pid))
			if err != nil {
				t.Skip("this system does not report which program a process runs")
			}
			if want := filepath.Join(dir, c.runs); exe != want {
				t.Errorf("%s runs, want %s", exe, want)
			}
		})
	}
}

// TestReloadDuringDrain removes a token while a call keeps a server from stopping or restarting: a request that has begun before, but is complete
// only afterwards, is refused.
func TestReloadDuringDrain(t *testing.T) {
	t.Parallel()
	for msg, sig := range map[string]syscall.Signal{"draining": syscall.SIGTERM, "handing over": syscall.SIGUSR2} {
		t.Run(msg, func(t *testing.T) {
			t.Parallel()
			dir := site(t, "[auth]\ntokens = [\""+token+"\", \""+token+"-2\"]\n", map[string][]byte{"shop.wasm": guest(t, "shop", "1.0.0", guestTools...)})
			s := start(t, dir)
			call := s.waiting(token + "-2")
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "POST /shop/echo HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n{", token, len(order))
			s.eventually("the head has been read", func() bool { return s.get("/readyz").status == http.StatusOK })
			s.signal(sig)
			s.waitLog(msg)
			put(t, filepath.Join(dir, "toolsrv.toml"), []byte("[auth]\ntokens = [\""+token+"-2\"]\n"))
			s.signal(syscall.SIGHUP)
			s.waitLine("the report that a token was removed", func(line map[string]any) bool { return line["tokens_removed"] != nil })
			fmt.Fprint(conn, order[1:])
			a, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Body.Close()
			if a.StatusCode == http.StatusOK {
				t.Errorf("the caller with the removed token got %d", a.StatusCode)
			}
			if a := <-call; a.status != http.StatusOK {
				t.Errorf("the call of another caller got %d %s", a.status, a.body)
			}
		})
	}
}

// TestRestartSockets restarts a service with TLS and sockets in place, while clients of both versions of HTTP lose nothing. Then one socket is
// replaced by another.
func TestRestartSockets(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: not with -short")
	}
	t.Parallel()
	a, keys, sockets := certtest.NewAuthority(t, "a"), t.TempDir(), t.TempDir()
	certificate, key := a.Issue(nil)
	in := func(name string) string { return filepath.Join(sockets, name) }
	settings := func(names ...string) []byte {
		addresses := []string{`"127.0.0.1:0"`}
		for _, name := range names {
			addresses = append(addresses, fmt.Sprintf("%q", "unix:"+in(name)))
		}
		return fmt.Appendf(nil, "server.address = [%s]\n[server.tls]\ncertificate = %q\nkey = %q\n", strings.Join(addresses, ", "),
			certtest.Write(t, keys, "cert.pem", certificate), certtest.Write(t, keys, "key.pem", key))
	}
	dir := site(t, "", map[string][]byte{"shop.wasm": guest(t, "shop", "1.0.0", guestTools...)})
	file := filepath.Join(dir, "toolsrv.toml")
	put(t, file, settings("first,one", "second"))
	s := run(t, command("openapi", "--config", file), false)
	url := strings.Replace(s.url, "http:", "https:", 1)

	var answered atomic.Int64
	var clients sync.WaitGroup
	stop := make(chan struct{})
	for i := range 4 {
		transport := &http.Transport{Protocols: new(http.Protocols), TLSClientConfig: &tls.Config{RootCAs: a.Pool}}
		transport.Protocols.SetHTTP1(i%2 == 0)
		transport.Protocols.SetHTTP2(i%2 == 1)
		clients.Go(func() {
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport, Timeout: patience}
			for {
				select {
				case <-stop:
					return
				default:
				}
				res, err := client.Post(url+"/shop/echo", "application/json", strings.NewReader(order))
				if err != nil {
					t.Errorf("a call was lost: %v", err)
					return
				}
				body, err := io.ReadAll(res.Body)
				_ = res.Body.Close()
				if err != nil || res.StatusCode != http.StatusOK || res.ProtoMajor != 1+i%2 {
					t.Errorf("a call got %s %d %s (%v), want HTTP/%d and 200", res.Proto, res.StatusCode, body, err, 1+i%2)
					return
				}
				answered.Add(1)
			}
		})
	}
	more := func(what string) {
		before := answered.Load()
		s.eventually(what, func() bool { return answered.Load() > before+100 || t.Failed() })
	}
	listens := func(name string) bool {
		conn, err := net.Dial("unix", in(name))
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}
	more("calls are answered")
	s.signal(syscall.SIGUSR2)
	s.waitCount("listening", 6)
	more("calls are answered after a restart")
	if !listens("first,one") || !listens("second") {
		t.Error("a socket is gone after a restart")
	}
	put(t, file, settings("third", "second"))
	s.signal(syscall.SIGUSR2)
	s.waitCount("listening", 9)
	more("calls are answered after a restart with other sockets")
	close(stop)
	clients.Wait()
	if listens("first,one") || !listens("second") || !listens("third") {
		t.Error("after a restart with other sockets, the sockets differ from the configuration")
	}
	s.signal(syscall.SIGTERM)
	if got := s.exitCode(); got != 0 {
		t.Errorf("exit code %d, want 0", got)
	}
	if left, err := os.ReadDir(sockets); err != nil || len(left) > 0 {
		t.Errorf("sockets were left behind: %v, %v", left, err)
	}
}

// TestInheritedNonsense checks that a server does not start with an inherited descriptor that is not a listener.
func TestInheritedNonsense(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"x", "1,127.0.0.1:8000", "3", "999,127.0.0.1:8000", "-1,", "99999999999999999999,", "3,127.0.0.1:1,127.0.0.1:2"} {
		cmd := command("openapi", "--address", "127.0.0.1:0")
		cmd.Dir = t.TempDir()
		cmd.Env = append(cmd.Env, "TOOLSRV_LISTENER="+value)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "unset it") {
			t.Errorf("TOOLSRV_LISTENER=%s: %v %s, want an error that says to unset it", value, err, out)
		}
	}
}
