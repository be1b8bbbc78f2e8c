package installer_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const script = "../../install.sh"

// packed returns an archive of files with this content.
func packed(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for name, content := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A site serves a release.
type site struct {
	archive   []byte
	checksums string
	cut       int // how many bytes of the archive are sent, though all are announced; 0: all
}

const archiveName = "toolsrv_linux_amd64.tar.gz"

// good is a release as it should be. The program in it says its version.
func good(t *testing.T) site {
	t.Helper()
	archive := packed(t, map[string]string{"toolsrv_linux_amd64/toolsrv": "#!/bin/sh\necho 'toolsrv v1.2.0 (revision x)'\n", "toolsrv_linux_amd64/LICENSE": "free"})
	return site{archive: archive, checksums: "0000  toolsrv_linux_arm64.tar.gz\n" + sumLine(archive)}
}

func sumLine(archive []byte) string {
	return fmt.Sprintf("%x  %s\n", sha256.Sum256(archive), archiveName)
}

func (s site) serve(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/moved/"+archiveName, r.URL.Path == "/moved/checksums.txt":
			http.Redirect(w, r, strings.TrimPrefix(r.URL.Path, "/moved"), http.StatusFound)
		case r.URL.Path == "/checksums.txt" && s.checksums != "":
			_, _ = w.Write([]byte(s.checksums))
		case r.URL.Path == "/"+archiveName && s.cut > 0:
			w.Header().Set("Content-Length", fmt.Sprint(len(s.archive)))
			_, _ = w.Write(s.archive[:s.cut])
			panic(http.ErrAbortHandler)
		case r.URL.Path == "/"+archiveName:
			_, _ = w.Write(s.archive)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// A machine is the environment of the script: the programs that it finds, and the system that uname reports.
type machine struct {
	programs []string // besides those that every system has
	system   string   // what uname says
	home     string
	more     []string // variables
}

// run runs the script, and returns its output.
func (m machine) run(t *testing.T, shell string, arguments ...string) (string, error) {
	t.Helper()
	bin := t.TempDir()
	for _, name := range append([]string{"sh", "tar", "gzip", "awk", "cut", "mktemp", "mkdir", "cp", "mv", "chmod", "rm", "head", "cat"}, m.programs...) {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("there is no %s", name)
		}
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	uname := "#!/bin/sh\nset -- \"$1\" " + m.system + "\n[ \"$1\" = -s ] && echo \"$2\" || echo \"$3\"\n"
	if err := os.WriteFile(filepath.Join(bin, "uname"), []byte(uname), 0o755); err != nil {
		t.Fatal(err)
	}
	words := append(strings.Fields(shell), script)
	cmd := exec.CommandContext(t.Context(), words[0], append(words[1:], arguments...)...)
	cmd.Env = append([]string{"PATH=" + bin, "HOME=" + m.home, "TMPDIR=" + t.TempDir()}, m.more...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func usual(t *testing.T) machine {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the script is for POSIX systems")
	}
	return machine{programs: []string{"curl", "sha256sum"}, system: "Linux x86_64", home: t.TempDir()}
}

// TestScript installs with every shell there is, and with each program that can download or compute checksums.
func TestScript(t *testing.T) {
	t.Parallel()
	url := good(t).serve(t)
	for _, shell := range []string{"sh", "dash", "bash --posix", "busybox sh", "ksh", "zsh --emulate sh"} {
		for _, programs := range [][]string{{"curl", "sha256sum"}, {"wget", "shasum", "perl"}, {"curl", "openssl"}} {
			t.Run(shell+"/"+programs[0]+" "+programs[1], func(t *testing.T) {
				t.Parallel()
				path, err := exec.LookPath(strings.Fields(shell)[0])
				if err != nil {
					t.Skipf("there is no %s", shell)
				}
				m := usual(t)
				m.programs = programs
				to := filepath.Join(t.TempDir(), "a folder", "bin")
				out, err := m.run(t, path+strings.TrimPrefix(shell, strings.Fields(shell)[0]), "--base-url", url+"/", "--to", to)
				if err != nil || !strings.Contains(out, "Installed "+to+"/toolsrv: toolsrv v1.2.0 (revision x)") || !strings.Contains(out, to+" is not in PATH") {
					t.Errorf("%v %s", err, out)
				}
				info, err := os.Stat(filepath.Join(to, "toolsrv"))
				if err != nil || info.Mode().Perm() != 0o755 {
					t.Errorf("installed: %v %v", info, err)
				}
				if entries, _ := os.ReadDir(to); len(entries) != 1 {
					t.Errorf("more than the program is left: %v", entries)
				}
			})
		}
	}
}

// TestScriptPlaces: the script follows redirects, takes its settings from variables, replaces a program, and chooses a folder.
func TestScriptPlaces(t *testing.T) {
	t.Parallel()
	m := usual(t)
	to := t.TempDir()
	if err := os.WriteFile(filepath.Join(to, "toolsrv"), []byte("an old one"), 0o700); err != nil {
		t.Fatal(err)
	}
	m.more = []string{"TOOLSRV_BASE_URL=" + good(t).serve(t) + "/moved", "TOOLSRV_TO=" + to}
	out, err := m.run(t, "sh")
	if text, _ := os.ReadFile(filepath.Join(to, "toolsrv")); err != nil || !strings.HasPrefix(string(text), "#!/bin/sh") {
		t.Errorf("%v %s; installed: %.20s", err, out, text)
	}
	if os.Geteuid() == 0 {
		return // /usr/local/bin is this machine's own
	}
	m.more = m.more[:1]
	if out, err := m.run(t, "sh"); err != nil || !strings.Contains(out, "Installed "+m.home+"/.local/bin/toolsrv") {
		t.Errorf("%v %s", err, out)
	}
}

// TestScriptRefuses has cases in which the script changes nothing and says why.
func TestScriptRefuses(t *testing.T) {
	t.Parallel()
	right := good(t)
	broken := packed(t, map[string]string{"toolsrv_linux_amd64/toolsrv": "#!/bin/sh\nexit 1\n"})
	without := packed(t, map[string]string{"other/toolsrv": "x"})
	of := func(archive []byte, checksums string) site { return site{archive: archive, checksums: checksums} }
	for name, c := range map[string]struct {
		site      site
		change    func(*machine)
		arguments []string
		want      string
	}{
		"another archive":               {site: of(broken, right.checksums), want: "toolsrv_linux_amd64.tar.gz is not what checksums.txt says: its SHA-256 is "},
		"an archive cut short":          {site: of(right.archive[:len(right.archive)/2], right.checksums), want: "The download was cut short or is not the original: nothing is installed"},
		"an empty archive":              {site: of(nil, right.checksums), want: "is not what checksums.txt says"},
		"an archive that ends early":    {site: site{archive: right.archive, checksums: right.checksums, cut: 100}, want: "could not download the whole of http://"},
		"no archive there":              {site: right, arguments: []string{"--base-url", "/nowhere"}, want: "could not download the whole of http://"},
		"no checksums":                  {site: of(right.archive, ""), want: "checksums.txt"},
		"checksums of others":           {site: of(right.archive, strings.ReplaceAll(right.checksums, "amd64", "mips")), want: "checksums.txt has no sum of toolsrv_linux_amd64.tar.gz: nothing is installed"},
		"a page in place of checksums":  {site: of(right.archive, "<html>\ntoolsrv_linux_amd64.tar.gz toolsrv_linux_amd64.tar.gz\n"), want: "has no sum"},
		"half a checksum":               {site: of(right.archive, sumLine(right.archive)[31:]), want: "has no sum"},
		"a checksum that is a command":  {site: of(right.archive, "$(touch${IFS}x)  "+archiveName+"\n"), want: "has no sum"},
		"no program inside":             {site: of(without, sumLine(without)), want: "does not have the program in it: nothing is installed"},
		"not an archive":                {site: of([]byte("hello"), sumLine([]byte("hello"))), want: "does not have the program in it: nothing is installed"},
		"a program that does not run":   {site: of(broken, sumLine(broken)), want: "the program does not run on this machine: nothing is installed"},
		"nobody there":                  {site: right, arguments: []string{"--base-url", "http://127.0.0.1:1"}, want: "could not download the whole of http://127.0.0.1:1/checksums.txt"},
		"another system":                {site: right, change: func(m *machine) { m.system = "FreeBSD amd64" }, want: "there is no archive for FreeBSD"},
		"another processor":             {site: right, change: func(m *machine) { m.system = "Linux mips" }, want: "there is no archive for processors of the kind mips"},
		"a Mac with Intel":              {site: right, change: func(m *machine) { m.system = "Darwin x86_64" }, want: "go install"},
		"no program for downloads":      {site: right, change: func(m *machine) { m.programs = []string{"sha256sum"} }, want: "neither curl nor wget is installed"},
		"no program for checksums":      {site: right, change: func(m *machine) { m.programs = []string{"curl"} }, want: "can't be checked"},
		"an argument that is not known": {site: right, arguments: []string{"--sudo", "yes"}, want: "--sudo is not known; usage: "},
		"an argument without a value":   {site: right, arguments: []string{"--to"}, want: "--to needs a value; usage: "},
		"an invalid version":            {site: right, arguments: []string{"--version", "1.0/../../x"}, want: `"1.0/../../x" is not a version`},
		"a version and a base URL":      {site: right, arguments: []string{"--version", "1.0.0"}, want: "leave out --version"},
		"a folder that can't be made":   {site: right, arguments: []string{"--to", "/dev/null/bin"}, want: "could not make the folder /dev/null/bin"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := usual(t)
			if c.change != nil {
				c.change(&m)
			}
			to, url := t.TempDir(), c.site.serve(t)
			if err := os.WriteFile(filepath.Join(to, "toolsrv"), []byte("an old one"), 0o700); err != nil {
				t.Fatal(err)
			}
			m.more = []string{"TOOLSRV_TO=" + to, "TOOLSRV_BASE_URL=" + url}
			for i, argument := range c.arguments {
				if strings.HasPrefix(argument, "/nowhere") {
					c.arguments[i] = url + argument
				}
			}
			out, err := m.run(t, "sh", c.arguments...)
			if err == nil || !strings.Contains(out, c.want) {
				t.Errorf("got %v %s, want an error that says %q", err, out, c.want)
			}
			if text, _ := os.ReadFile(filepath.Join(to, "toolsrv")); string(text) != "an old one" {
				t.Errorf("the program that was there is now %q", text)
			}
			if entries, _ := os.ReadDir(to); len(entries) != 1 {
				t.Errorf("something is left: %v", entries)
			}
		})
	}
}

// TestScriptCutShort runs the beginning of the script, as a shell does when the connection breaks: nothing happens.
func TestScriptCutShort(t *testing.T) {
	t.Parallel()
	m := usual(t)
	text, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	url, to := good(t).serve(t), t.TempDir()
	end := bytes.LastIndex(text, []byte("\nmain \"$@\"")) + 1
	for cut := 0; cut < end; cut += 97 {
		cmd := exec.CommandContext(t.Context(), "sh")
		cmd.Stdin = bytes.NewReader(text[:cut])
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + m.home, "TOOLSRV_TO=" + to, "TOOLSRV_BASE_URL=" + url}
		_ = cmd.Run() // this fails for most beginnings, which are not whole scripts
		if entries, _ := os.ReadDir(to); len(entries) > 0 {
			t.Fatalf("the first %d bytes of the script install %v", cut, entries)
		}
	}
}

func TestShellcheck(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("shellcheck"); err != nil {
		t.Skip("there is no shellcheck: make setup-dist installs it")
	}
	if out, err := exec.CommandContext(t.Context(), "shellcheck", "--shell=sh", script).CombinedOutput(); err != nil {
		t.Errorf("%s", out)
	}
}
