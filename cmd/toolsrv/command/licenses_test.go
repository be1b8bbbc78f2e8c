package command_test

import (
	"strings"
	"testing"
)

// Anybody who gets the program, or a tool that the program has made from a script, can read the licences.
func TestLicenses(t *testing.T) {
	t.Parallel()
	code, text, stderr := run("licenses")
	if code != 0 || stderr != "" {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	for _, want := range []string{
		"toolsrv is under the Apache License 2.0", "\n  github.com/tetratelabs/wazero v", "Copyright 2009 The Go Authors",
		"The engine for javascript, quickjs-ng ", "Fabrice Bellard", "The engine for python, cpython ", "PYTHON SOFTWARE FOUNDATION LICENSE",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not print %q", want)
		}
	}
	if code, stdout, _ := run("licenses", "all"); code != 2 || stdout != "" {
		t.Errorf("with an argument: exit code %d, %d bytes; want 2 and nothing", code, len(stdout))
	}
}
