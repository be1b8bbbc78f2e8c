package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/deploy/internal/release"
)

// checkArchives unpacks each archive as its user does: everything promised is in it, and the system can start the program. Programs that run on this
// machine, or on qemu, print the version and commit they were built from.
func checkArchives(t *testing.T, root, out string) {
	var about struct{ Version string }
	folders := map[release.System]string{}
	for _, s := range release.Systems() {
		folders[s] = unpackArchive(t, out, s)
	}
	own := filepath.Join(folders[release.System{OS: runtime.GOOS, Arch: runtime.GOARCH}], "toolsrv")
	if err := json.Unmarshal([]byte(output(t, out, nil, own, "version", "--json")), &about); err != nil || about.Version == "" {
		t.Fatalf("the program for this machine has the version %q (%v)", about.Version, err)
	}
	licenses := output(t, out, nil, own, "licenses")
	pages := t.TempDir()
	output(t, out, nil, own, "manpages", pages)
	for s, folder := range folders {
		t.Run(s.String(), func(t *testing.T) {
			for name, want := range map[string]string{
				"LICENSES": licenses, "LICENSE": string(content(t, root, "LICENSE")), "NOTICE": string(content(t, root, "NOTICE")), "README.md": string(content(t, root, "README.md")),
				"completions/toolsrv.bash": output(t, out, nil, own, "completion", "bash"), "completions/_toolsrv": output(t, out, nil, own, "completion", "zsh"),
				"completions/toolsrv.fish": output(t, out, nil, own, "completion", "fish"), "completions/toolsrv.ps1": output(t, out, nil, own, "completion", "powershell"),
				"man/man1/toolsrv.1": string(content(t, pages, "toolsrv.1")), "man/man1/toolsrv-state-backup.1": string(content(t, pages, "toolsrv-state-backup.1")),
			} {
				if got := string(content(t, folder, name)); want == "" || got != want {
					t.Errorf("%s is %.80q, want %.80q", name, got, want)
				}
			}
			if found, _ := filepath.Glob(filepath.Join(folder, "man", "man1", "*.1")); len(found) != len(entriesOf(t, pages)) {
				t.Errorf("it has %d manual pages of %d", len(found), len(entriesOf(t, pages)))
			}
			program := filepath.Join(folder, s.Binary())
			checkProgram(t, s, program)
			noPaths(t, root, content(t, folder, s.Binary()))
			if run := runnerOf(s); run != nil {
				checkVersion(t, root, s, about.Version, output(t, out, nil, run[0], append(append(run[1:], program), "version", "--json")...))
			}
		})
	}
	t.Run("formula", func(t *testing.T) {
		for _, name := range regexp.MustCompile(`"((?:completions|man)/[^"]*|LICENSES|NOTICE)"`).FindAllStringSubmatch(string(content(t, out, "toolsrv.rb")), -1) {
			for s, folder := range folders {
				if found, err := filepath.Glob(filepath.Join(folder, name[1])); len(found) == 0 {
					t.Errorf("Homebrew would install %s, which the archive for %s does not have (%v)", name[1], s, err)
				}
			}
		}
	})
	t.Run("install.sh", func(t *testing.T) { runInstaller(t, out, about.Version) })
}

// unpackArchive unpacks the archive for a system, and returns the only folder in it. Everything else in the archive must be a regular file in this
// folder.
func unpackArchive(t *testing.T, out string, s release.System) string {
	t.Helper()
	to, name := t.TempDir(), "toolsrv_"+s.String()
	put := func(file string, mode fs.FileMode, content io.Reader) {
		t.Helper()
		want := fs.FileMode(0o644)
		if file == name+"/"+s.Binary() {
			want = 0o755
		}
		if !strings.HasPrefix(file, name+"/") || !filepath.IsLocal(file) || mode != want {
			t.Fatalf("%s: %s with %v, want %v", name, file, mode, want)
		}
		text, err := io.ReadAll(content)
		path := filepath.Join(to, filepath.FromSlash(file))
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, text, want)); err != nil {
			t.Fatal(err)
		}
	}
	if s.OS == "windows" {
		unzip(t, filepath.Join(out, name+".zip"), put)
		return filepath.Join(to, name)
	}
	z, err := gzip.NewReader(bytes.NewReader(content(t, out, name+".tar.gz")))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return filepath.Join(to, name)
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname+h.Gname != "" {
			t.Errorf("%s belongs to %s, %d", h.Name, h.Uname, h.Uid)
		}
		put(h.Name, h.FileInfo().Mode(), r)
	}
}

func entriesOf(t *testing.T, folder string) []os.DirEntry {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// checkProgram checks that a system would start the program: it is for the right processor, and needs no library that may be missing.
func checkProgram(t *testing.T, s release.System, file string) {
	t.Helper()
	switch s.OS {
	case "linux":
		p, err := elf.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[s.Arch]; p.Machine != want || p.Section(".interp") != nil {
			t.Errorf("it is for %v, with a loader: %v", p.Machine, p.Section(".interp") != nil)
		}
	case "darwin":
		p, err := macho.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		// Macs with Apple's processors end a program that has no signature. An ad hoc signature is enough.
		const signature = 0x1d // https://opensource.apple.com/source/xnu: LC_CODE_SIGNATURE
		signed := slices.ContainsFunc(p.Loads, func(l macho.Load) bool { raw := l.Raw(); return len(raw) >= 8 && p.ByteOrder.Uint32(raw) == signature })
		if p.Cpu != macho.CpuArm64 || p.Type != macho.TypeExec || !signed {
			t.Errorf("it is for %v, of type %v, signed: %v", p.Cpu, p.Type, signed)
		}
		libraries, err := p.ImportedLibraries()
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range libraries {
			if !strings.HasPrefix(l, "/usr/lib/") && !strings.HasPrefix(l, "/System/Library/") {
				t.Errorf("it needs %s", l)
			}
		}
	case "windows":
		p, err := pe.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		header, ok := p.OptionalHeader.(*pe.OptionalHeader64)
		if !ok || p.Machine != pe.IMAGE_FILE_MACHINE_AMD64 || header.Subsystem != pe.IMAGE_SUBSYSTEM_WINDOWS_CUI {
			t.Errorf("it is for %#x, with the header %+v", p.Machine, header)
		}
	}
}

// noPaths checks that the program contains no path of the machine that built it.
func noPaths(t *testing.T, root string, program []byte) {
	t.Helper()
	checkout, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	folders := map[string]string{"the checkout": checkout, "HOME": os.Getenv("HOME"), "the temporary folder": filepath.Join(os.TempDir(), "toolsrv-dist-")}
	if err := json.Unmarshal([]byte(output(t, root, nil, "go", "env", "-json", "GOROOT", "GOPATH", "GOMODCACHE", "GOCACHE")), &folders); err != nil {
		t.Fatal(err)
	}
	for what, folder := range folders {
		if folder == "" || folder == "/" {
			continue
		}
		for from := 0; ; {
			i := bytes.Index(program[from:], []byte(folder))
			if i < 0 {
				break
			}
			around := program[max(from+i-1, 0):min(from+i+len(folder)+80, len(program))]
			form := `^.` + regexp.QuoteMeta(folder) + `[/\d]`
			if what == "HOME" { // HOME may be /root, and a library may have a package pkg/root
				form = `^[^\w.-]` + regexp.QuoteMeta(folder) + `/`
			}
			if regexp.MustCompile(`(?s)` + form).Match(around) {
				t.Errorf("%s is in it: %q", what, around)
				break
			}
			from += i + len(folder)
		}
	}
}

// runnerOf returns the command that runs programs of a system on this machine: empty if none is needed, nil if there is none.
func runnerOf(s release.System) []string {
	if s.OS == runtime.GOOS && s.Arch == runtime.GOARCH {
		return []string{"env"}
	}
	if s == (release.System{OS: "linux", Arch: "arm64"}) {
		for _, name := range []string{"qemu-aarch64", "qemu-aarch64-static"} {
			if path, err := exec.LookPath(name); err == nil {
				return []string{path}
			}
		}
	}
	return nil
}

// checkVersion compares the version that a program prints with the commit.
func checkVersion(t *testing.T, root string, s release.System, version, text string) {
	t.Helper()
	var got struct {
		Version, Revision, OS, Arch string
		Modified                    bool
		Engines                     []struct{ Name string }
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	commit := strings.TrimSpace(output(t, root, nil, "git", "rev-parse", "HEAD"))
	if got.Version != version || got.Revision != commit || got.Modified || got.OS != s.OS || got.Arch != s.Arch || len(got.Engines) != 2 {
		t.Errorf("it says %s, want version %s of commit %s", text, version, commit)
	}
}

// runInstaller runs the release's install script on the files of the release.
func runInstaller(t *testing.T, out, version string) {
	if runtime.GOOS == "windows" {
		t.Skip("the script is for POSIX systems")
	}
	server := httptest.NewServer(http.FileServer(http.Dir(out)))
	t.Cleanup(server.Close)
	to := filepath.Join(t.TempDir(), "bin")
	said := output(t, t.TempDir(), []string{"http_proxy=", "TOOLSRV_VERSION="}, "sh", filepath.Join(out, "install.sh"), "--base-url", server.URL, "--to", to)
	if want := "Installed " + to + "/toolsrv: toolsrv " + version; !strings.Contains(said, want) {
		t.Errorf("it says %s, want %q in it", said, want)
	}
	if got := output(t, to, nil, "./toolsrv", "version"); !strings.HasPrefix(got, "toolsrv "+version) {
		t.Errorf("what is installed says %s", got)
	}
}
