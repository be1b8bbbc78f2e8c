package command_test

import (
	"net"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// The running command is tested in the tests of the program, since it handles real signals.

func TestUpFails(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	dir := t.TempDir()
	wrong := t.TempDir()
	testkit.Put(t, wrong, "toolsrv.toml", "[tools]\nscripts = true\nfuture = 1\n")
	asked := t.TempDir()
	testkit.Put(t, asked, "toolsrv.toml", "[server]\naddress = \""+taken.Addr().String()+"\"\n")
	testkit.Put(t, asked, "tools/x", "")
	away := t.TempDir()
	testkit.Put(t, away, "toolsrv.toml", "")
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"an empty name", []string{""}, 2, "is empty: name one, or leave it out"},
		{"an empty address", []string{dir, "--address="}, 2, "--address is empty"},
		{"no such level", []string{dir, "--log-level", "loud"}, 2, "--log-level"},
		{"nothing there", []string{"nowhere"}, 1, "there is no file or folder nowhere: toolsrv init nowhere makes"},
		{"two folders", []string{dir, dir}, 2, "name one folder, or files"},
		{"a source in Go", []string{testkit.Put(t, t.TempDir(), "main.go", "")}, 2, "run toolsrv dev with its folder"},
		{"an address in use", []string{dir, "--address", taken.Addr().String()}, 1, "another program listens there"},
		{"an address in use, set by the configuration", []string{asked}, 1, "another program listens there"},
		{"a configuration of a newer version", []string{wrong}, 1, "toolsrv.toml:3:1: unknown key in [tools]: remove it, or update toolsrv if a newer one has it: the keys are cache_directory, "},
		{"a configuration without its folder", []string{away}, 1, "there is no tools directory"},
		{"a grant that is missing", []string{dir, "--grant", "nowhere.toml"}, 1, "nowhere.toml"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := run(append([]string{"up"}, c.args...)...)
			if code != c.code || stdout != "" || !strings.Contains(stderr, c.says) {
				t.Errorf("exit code %d, standard output %q, standard error %q; want %d, nothing, and %q", code, stdout, stderr, c.code, c.says)
			}
		})
	}
}
