package command_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The running command is tested in the tests of the program, since it handles real signals.

func TestOpenAPIUsage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		args []string
		says string
	}{
		{"unknown flag", []string{"--adress", ":0"}, "--adress"},
		{"argument", []string{"tools"}, `"tools"`},
		{"empty token", []string{"--auth-token", "good", "--auth-token", ""}, "--auth-token is empty"},
		{"empty tokens file", []string{"--auth-tokens-file="}, "--auth-tokens-file is empty"},
		{"empty configuration", []string{"--config", ""}, "--config is empty"},
		{"empty address", []string{"--address="}, "--address is empty"},
		{"no such level", []string{"--log-level", "loud"}, "--log-level"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := run(append([]string{"openapi"}, c.args...)...)
			if code != 2 || stdout != "" || !strings.Contains(stderr, c.says) || !strings.Contains(stderr, "toolsrv openapi --help") {
				t.Errorf("exit code %d, standard output %q, standard error %q; want 2, nothing, and %q", code, stdout, stderr, c.says)
			}
		})
	}
}

func TestOpenAPIFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "tools"), 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	empty := write("empty.toml", "")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	for _, c := range []struct {
		name string
		args []string
		says string
	}{
		{"no configuration file", []string{"--config", filepath.Join(dir, "nowhere.toml")}, "nowhere.toml"},
		{"a folder in place of a file", []string{"--config", dir}, dir},
		{"not TOML", []string{"--config", write("bad.toml", "[tools\n")}, "bad.toml:1"},
		{"no tokens file", []string{"--config", empty, "--auth-tokens-file", filepath.Join(dir, "nowhere")}, "nowhere"},
		{"a file without tokens", []string{"--config", empty, "--auth-tokens-file", empty}, "empty.toml"},
		{"address in use", []string{"--config", empty, "--address", taken.Addr().String()}, "another program listens there"},
		{"no address", []string{"--config", empty, "--address", "here"}, "host:port"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := run(append([]string{"openapi"}, c.args...)...)
			if code != 1 || stdout != "" || !strings.Contains(stderr, c.says) {
				t.Errorf("exit code %d, standard output %q, standard error %q; want 1, nothing, and %q", code, stdout, stderr, c.says)
			}
		})
	}
}
