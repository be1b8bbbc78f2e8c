package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/licenses"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestFiles compares the files in the tree with the present parts of the program.
func TestFiles(t *testing.T) {
	t.Parallel()
	testkit.NeedBuild(t, "go")
	const root = "../../../.."
	g, err := gather(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]byte{noticeFile: g.notice, textsFile: g.texts} {
		if got := testkit.Read(t, root, filepath.FromSlash(name)); !bytes.Equal(got, want) {
			t.Errorf("%s is not what the program is made of: run make licenses, and commit it", name)
		}
	}
}

// TestTexts looks for each part of the list in the texts that the program prints.
func TestTexts(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := licenses.Write(&out); err != nil {
		t.Fatal(err)
	}
	list, texts, ok := strings.Cut(out.String(), licenses.Line)
	if !ok || list != string(testkit.Read(t, "../../../..", noticeFile)) {
		t.Errorf("it does not begin with NOTICE, but with\n%.500s", out.String())
	}
	for _, want := range []string{
		"Apache License", "Copyright 2009 The Go Authors", "github.com/tetratelabs/wazero v", "Copyright 2020-2023 wazero authors", "github.com/spf13/cobra v",
		"golang.org/x/sys v", "QuickJS-ng", "Fabrice Bellard", "PYTHON SOFTWARE FOUNDATION LICENSE", "Expat", "zlib", "tzdata", "wasi-libc", "Rich Felker", "preact 11", "Jason Miller", "swagger-ui-dist", "SmartBear",
	} {
		if !strings.Contains(texts, want) {
			t.Errorf("the licences don't have %q", want)
		}
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Apache License\n   Version 2.0, January 2004":                                                         "Apache-2.0",
		"Permission is hereby granted, free of charge,\nto any person obtaining a copy":                        "MIT",
		"Redistributions in binary form must reproduce the above copyright ...\n * Neither the name of Google": "BSD-3-Clause",
		"Redistributions in binary form must reproduce the above copyright":                                    "BSD-2-Clause",
		"All rights reserved. Pay us.":                                                                         "",
	} {
		if got := classify(text); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestTextOf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"LICENSE.txt": "one\r\n", "NOTICE": "two", "license_test.go": "no", "copyright.go": "no"} {
		testkit.Put(t, dir, name, text)
	}
	if err := os.Mkdir(filepath.Join(dir, "LICENSE"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := textOf(dir); err != nil || got != "one\n\ntwo\n\n" {
		t.Errorf("got %q, %v", got, err)
	}
}
