package main

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestCheck checks modules with mistakes that only matter on other systems.
func TestCheck(t *testing.T) {
	if testkit.Race(t) {
		t.Skip("waits for the go command, on one goroutine")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip(err)
	}
	if runtime.GOOS == "windows" {
		t.Skip("this system is windows itself")
	}
	good := map[string]string{
		"go.mod":         "module example.com/m\n\ngo 1.25\n",
		"m.go":           "package m\n\nimport \"fmt\"\n\nfunc Say() { fmt.Println(name()) }\n",
		"m_windows.go":   "package m\n\nfunc name() string { return \"w\" }\n",
		"m_other.go":     "//go:build !windows\n\npackage m\n\nfunc name() string { return \"o\" }\n\nconst Other = 1\n",
		"m_test.go":      "package m\n\nimport \"testing\"\n\nfunc TestName(t *testing.T) { t.Log(name()) }\n",
		"use/u_test.go":  "package use_test\n\nimport (\n\t\"testing\"\n\n\t\"example.com/m\"\n)\n\nfunc TestSay(*testing.T) { m.Say() }\n",
		"use/use.go":     "package use\n",
		"apart/apart.go": "package apart\n",
	}
	for _, tt := range []struct{ name, file, text, want string }{
		{name: "nothing is wrong"},
		{"in a test", "m_more_test.go", "package m\n\nvar _ = Other\n", "undefined: Other"},
		{"a mistake in another package's test", "use/v_test.go", "package use_test\n\nimport \"example.com/m\"\n\nvar _ = m.Other\n", "m.Other"},
		{"a mistake in the body of a function", "apart/a.go", "package apart\n\nimport \"syscall\"\n\nfunc f() { syscall.Kill(1, 2) }\n", "syscall.Kill"},
		{"unused", "m_x_windows.go", "package m\n\nfunc f() { a := 1 }\n", "declared and not used"},
		{"a mistake that only vet finds", "m_x_windows.go", "package m\n\nimport \"fmt\"\n\nfunc f() { fmt.Printf(\"%d\", \"x\") }\n", "%d"},
		{"of syntax", "m_x_windows.go", "package m\n\nfunc {\n", "m_x_windows.go"},
		{"a mistake in an import", "m_x_windows.go", "package m\n\nimport _ \"example.com/m/none\"\n", "example.com/m/none"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range good {
				testkit.Put(t, dir, name, text)
			}
			if tt.file != "" {
				testkit.Put(t, dir, tt.file, tt.text)
			}
			said := &strings.Builder{}
			err := check([]string{"windows/amd64"}, []string{dir}, said)
			if tt.file == "" && (err != nil || !strings.Contains(said.String(), "vetted 1 of them")) {
				t.Errorf("%v\n%s", err, said)
			}
			if tt.file != "" && (err == nil || !strings.Contains(err.Error()+said.String(), tt.want)) {
				t.Errorf("got %v and\n%s, want %s", err, said, tt.want)
			}
		})
	}
}
