package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestUsage calls dist wrongly: nothing is built, and the error says what is valid.
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

// made is a folder with a release to check, because making one takes minutes.
var made = flag.String("made", "", "check the release of this commit that is in this `folder`")

// TestRelease makes a release of the same commit in two folders: the files are identical, and what they say about each other is true.
func TestRelease(t *testing.T) {
	t.Parallel()
	const here = "../../.."
	if *made != "" {
		check(t, here, *made)
		return
	}
	if testing.Short() {
		t.Skip("it builds everything twice")
	}
	from := here // later it is the first checkout, so that both have the same commit, whatever is committed here meanwhile
	var outs [2]string
	var sums [2]map[string][sha256.Size]byte
	for i := range outs {
		root := filepath.Join(t.TempDir(), strings.Repeat("deeper/", i), "checkout")
		if text, err := exec.Command("git", "clone", "-q", from, root).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		from = root
		outs[i] = filepath.Join(t.TempDir(), "dist")
		if err := run(t.Context(), []string{"-root", root, "-out", outs[i]}, t.Output()); err != nil {
			t.Fatal(err)
		}
		sums[i] = sumsOf(t, outs[i])
	}
	for name, sum := range sums[0] {
		if other, found := sums[1][name]; !found || other != sum {
			t.Errorf("%s differs between two builds of one commit", name)
		}
	}
	if len(sums[0]) != len(sums[1]) {
		t.Errorf("%d files in one folder, %d in the other", len(sums[0]), len(sums[1]))
	}
	check(t, from, outs[0])
}

// sumsOf returns the SHA-256 of each file below a folder.
func sumsOf(t *testing.T, folder string) map[string][sha256.Size]byte {
	t.Helper()
	sums := map[string][sha256.Size]byte{}
	err := filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(file)
		name, _ := filepath.Rel(folder, file)
		sums[filepath.ToSlash(name)] = sha256.Sum256(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}
