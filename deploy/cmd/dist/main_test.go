package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestUsage has dist called wrongly: nothing is built, and the error says what is known.
func TestUsage(t *testing.T) {
	t.Parallel()
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "old"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		arguments []string
		want      string
	}{
		"no folder":       {nil, "usage"},
		"an argument":     {[]string{"-out", t.TempDir(), "more"}, "usage"},
		"an unknown part": {[]string{"-out", t.TempDir(), "-only", "archives,cakes"}, `no "cakes"`},
		"files there":     {[]string{"-out", full}, "holds files already"},
		"no checkout":     {[]string{"-out", filepath.Join(t.TempDir(), "dist"), "-root", t.TempDir()}, "read the commit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := run(context.Background(), c.arguments, &bytes.Buffer{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}

// TestReproducible makes a release of the same commit in two folders: the same files, bit by bit.
func TestReproducible(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds everything twice")
	}
	var made [2]map[string][sha256.Size]byte
	for i := range made {
		root := filepath.Join(t.TempDir(), strings.Repeat("deeper/", i), "checkout")
		if text, err := exec.Command("git", "clone", "-q", "../../..", root).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		out := filepath.Join(t.TempDir(), "dist")
		if err := run(t.Context(), []string{"-root", root, "-out", out}, t.Output()); err != nil {
			t.Fatal(err)
		}
		made[i] = map[string][sha256.Size]byte{}
		err := filepath.WalkDir(out, func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			content, err := os.ReadFile(file)
			name, _ := filepath.Rel(out, file)
			made[i][name] = sha256.Sum256(content)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(made[0]) == 0 {
		t.Error("nothing was made")
	}
	for name, sum := range made[0] {
		if other, found := made[1][name]; !found || other != sum {
			t.Errorf("%s differs between two builds of one commit", name)
		}
	}
	if len(made[0]) != len(made[1]) {
		t.Errorf("%d files in one folder, %d in the other", len(made[0]), len(made[1]))
	}
}
