package command_test

import (
	"net"
	"strings"
	"testing"
)

// The running command is tested in the tests of the program, since it handles real signals.

func TestDevFails(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"two folders", []string{"a", "b"}, 2, `unexpected argument "b"`},
		{"empty address", []string{"--address="}, 2, "--address is empty"},
		{"no such level", []string{"--log-level", "loud"}, 2, "--log-level"},
		{"no source", []string{t.TempDir()}, 1, "no Go file, no Cargo.toml and no script"},
		{"address in use", []string{echo(t, echoManifest), "--address", taken.Addr().String()}, 1, "another program listens there"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := run(append([]string{"dev"}, c.args...)...)
			if code != c.code || stdout != "" || !strings.Contains(stderr, c.says) {
				t.Errorf("exit code %d, standard output %q, standard error %q; want %d, nothing, and %q", code, stdout, stderr, c.code, c.says)
			}
		})
	}
}
