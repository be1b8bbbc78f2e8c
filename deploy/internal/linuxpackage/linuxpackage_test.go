package linuxpackage

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/deploy/internal/release"
)

func TestVersions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ version, deb, apk string }{
		{"1.2.0", "1.2.0", "1.2.0-r0"},
		{"1.2.0-rc.1", "1.2.0~rc.1", "1.2.0_rc1-r0"},
		{"1.2.0-beta", "1.2.0~beta", "1.2.0_beta-r0"},
		{"1.2.0-preview.3", "1.2.0~preview.3", "1.2.0_pre-r0"},
		{"0.0.0-20260102150405-abcdefabcdef", "0.0.0~20260102150405.abcdefabcdef", "0.0.0_pre20260102150405-r0"},
		{"1.2.1-0.20260102150405-abcdefabcdef+dirty", "1.2.1~0.20260102150405.abcdefabcdef", "1.2.1_pre20260102150405-r0"},
	} {
		if deb, rpm, apk := debVersion(c.version), rpmVersion(c.version), apkVersion(c.version); deb != c.deb || rpm != c.deb || apk != c.apk {
			t.Errorf("%s becomes %s, %s and %s, want %s, %[5]s and %s", c.version, deb, rpm, apk, c.deb, c.apk)
		}
	}
}

// made is the folder for the packages of the newest commit. The first test that needs them makes them. It is set once, before any test runs.
var made string

var first = sync.OnceValue(func() error {
	return makeOf(context.Background(), "../../..", made, release.System{OS: "linux", Arch: "amd64"}, release.System{OS: "linux", Arch: "arm64"})
})

func TestMain(m *testing.M) {
	if token := os.Getenv(callerVariable); token != "" {
		os.Exit(call(token))
	}
	os.Exit(func() int {
		var err error
		if made, err = os.MkdirTemp("", "toolsrv-packages-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(made)
		return m.Run()
	}())
}

// makeOf makes the packages of the checkout at root.
func makeOf(ctx context.Context, root, out string, systems ...release.System) error {
	r, err := release.Open(ctx, root, out, systems...)
	if err != nil {
		return err
	}
	return errors.Join(Make(ctx, r), r.Close())
}

// packages returns the folder of the packages.
func packages(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds the programs")
	}
	if err := first(); err != nil {
		t.Fatal(err)
	}
	return made
}

// output runs a program that a test needs, and returns its output.
func output(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("there is no %s: make setup-dist installs it", name)
	}
	out, err := exec.CommandContext(t.Context(), name, arguments...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, arguments, err, out)
	}
	return string(out)
}

// installed are the files in each package.
var installed = []string{
	"/etc/toolsrv/toolsrv.toml", "/usr/bin/toolsrv", "/usr/share/bash-completion/completions/toolsrv",
	"/usr/share/toolsrv/rules.yaml", "/usr/share/toolsrv/dashboard.json",
	"/usr/share/fish/vendor_completions.d/toolsrv.fish", "/usr/share/man/man1/toolsrv.1.gz", "/usr/share/man/man1/toolsrv-openapi.1.gz",
}

// units are the additional files in packages for systemd.
var units = []string{
	"/usr/lib/systemd/system/toolsrv.service", "/usr/lib/systemd/system/toolsrv.socket", "/usr/lib/sysusers.d/toolsrv.conf", "/usr/lib/tmpfiles.d/toolsrv.conf",
}

// TestLintian checks that Debian's own checker finds nothing.
func TestLintian(t *testing.T) {
	t.Parallel()
	for _, arch := range []string{"amd64", "arm64"} {
		out := output(t, "lintian", "--allow-root", "--info", "--display-info", "--fail-on", "error,warning", filepath.Join(packages(t), "toolsrv_linux_"+arch+".deb"))
		if regexp.MustCompile(`(?m)^[EW]:`).MatchString(out) {
			t.Error(out)
		}
	}
}

func TestDeb(t *testing.T) {
	t.Parallel()
	file := filepath.Join(packages(t), "toolsrv_linux_amd64.deb")
	list := output(t, "dpkg-deb", "--contents", file)
	for _, name := range append(append([]string{"/usr/share/doc/toolsrv/copyright", "/usr/share/doc/toolsrv/changelog.gz"}, installed...), units...) {
		if !regexp.MustCompile(`(?m)^-r[-w][-x]r-[-x]r-[-x] root/root .* \.` + regexp.QuoteMeta(name) + "$").MatchString(list) {
			t.Errorf("%s is missing, or not root's:\n%s", name, list)
		}
	}
	if strings.Contains(list, "/etc/toolsrv/tokens") {
		t.Error("the package contains a file of tokens")
	}
	info := output(t, "dpkg-deb", "--info", file)
	if !strings.Contains(info, "Architecture: amd64") || !strings.Contains(info, "Maintainer: toolsrv maintainers <") {
		t.Error(info)
	}
	if got := output(t, "dpkg-deb", "--info", file, "conffiles"); got != "/etc/toolsrv/toolsrv.toml\n" {
		t.Errorf("files that belong to the operator: %q", got)
	}
}

// TestRPM lists a package's content with rpm, and unpacks it.
func TestRPM(t *testing.T) {
	t.Parallel()
	for arch, name := range map[string]string{"amd64": "x86_64", "arm64": "aarch64"} {
		file := filepath.Join(packages(t), "toolsrv_linux_"+arch+".rpm")
		if got := output(t, "rpm", "-qp", "--queryformat", "%{ARCH} %{BUILDHOST} %{LICENSE}", file); got != name+" localhost Apache-2.0" {
			t.Errorf("%s: %s", arch, got)
		}
		list := strings.Fields(output(t, "rpm", "-qlp", file))
		for _, want := range append(append([]string{"/usr/share/licenses/toolsrv/LICENSES"}, installed...), units...) {
			if !slices.Contains(list, want) {
				t.Errorf("%s: %s is missing: %q", arch, want, list)
			}
		}
		if got := strings.TrimSpace(output(t, "rpm", "-qp", "--configfiles", file)); got != "/etc/toolsrv/toolsrv.toml" {
			t.Errorf("files that belong to the operator: %q", got)
		}
		if got := output(t, "rpm", "-qp", "--queryformat", "[%{FILENAMES} %{FILEFLAGS:fflags} %{FILEUSERNAME}\n]", file); !strings.Contains(got, "/etc/toolsrv/toolsrv.toml cn root\n") {
			t.Errorf("an upgrade would replace what the operator has written: %s", got)
		}
		scripts := output(t, "rpm", "-qp", "--scripts", file)
		for _, want := range []string{"postinstall", "preuninstall", "postuninstall", "systemd-sysusers toolsrv.conf", "systemctl kill --kill-who=main --signal=USR2"} {
			if !strings.Contains(scripts, want) {
				t.Errorf("no %q among the scripts:\n%s", want, scripts)
			}
		}
		output(t, "rpm", "-K", "--nosignature", file) // fails if a digest is wrong
	}
	dir := t.TempDir()
	output(t, "sh", "-c", `cd "$1" && rpm2cpio "$2" | cpio -idm --quiet --no-absolute-filenames`, "sh", dir, filepath.Join(packages(t), "toolsrv_linux_amd64.rpm"))
	if runtime.GOARCH == "amd64" {
		if got := output(t, filepath.Join(dir, "usr/bin/toolsrv"), "version"); !strings.HasPrefix(got, "toolsrv ") {
			t.Error(got)
		}
	}
}

// TestScripts checks the scripts that package managers run, with shells and shellcheck.
func TestScripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../packages/*.p*")
	if err != nil || len(files) < 9 {
		t.Fatal(files, err)
	}
	for _, file := range append(files, "../../packages/openrc") {
		output(t, "sh", "-n", file)
		output(t, "shellcheck", "--shell=sh", "--exclude=SC2034", file) // openrc-run uses the variables that seem unused
	}
}

// TestUnits lets systemd check the units.
func TestUnits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"toolsrv.service", "toolsrv.socket"} {
		text, err := os.ReadFile(filepath.Join("../../systemd", name))
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.ReplaceAll(text, []byte("/usr/bin/toolsrv "), []byte("/bin/true ")) // toolsrv need not be installed here
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out := output(t, "systemd-analyze", "--man=no", "verify", filepath.Join(dir, "toolsrv.service"), filepath.Join(dir, "toolsrv.socket")); out != "" {
		t.Error(out)
	}
	// systemd-analyze takes ten times the exposure: 20 means 2.0.
	output(t, "systemd-analyze", "security", "--offline=yes", "--threshold=20", filepath.Join(dir, "toolsrv.service"))
}

// TestAPK reads both parts of Alpine's format: the package's description with its scripts, and its files.
func TestAPK(t *testing.T) {
	t.Parallel()
	for arch, name := range map[string]string{"amd64": "x86_64", "arm64": "aarch64"} {
		file, err := os.Open(filepath.Join(packages(t), "toolsrv_linux_"+arch+".apk"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		in := bufio.NewReader(file)
		found := map[string]*tar.Header{}
		var info string
		for {
			if _, err := in.Peek(1); err != nil {
				break
			}
			z, err := gzip.NewReader(in)
			if err != nil {
				t.Fatal(err)
			}
			z.Multistream(false)
			for members := tar.NewReader(z); ; {
				h, err := members.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				found["/"+strings.TrimSuffix(h.Name, "/")] = h
				if h.Name == ".PKGINFO" {
					text, err := io.ReadAll(members)
					if err != nil {
						t.Fatal(err)
					}
					info = string(text)
				}
			}
			_, _ = io.Copy(io.Discard, z) // zeros at the end
		}
		for _, want := range []string{"pkgname = toolsrv\n", "arch = " + name + "\n", "license = Apache-2.0\n"} {
			if !strings.Contains(info, want) {
				t.Errorf("%s: no %q in\n%s", arch, want, info)
			}
		}
		// https://wiki.alpinelinux.org/wiki/Package_policies: what apk takes for a version
		if !regexp.MustCompile(`(?m)^pkgver = [0-9]+(\.[0-9]+)*(_(alpha|beta|pre|rc)[0-9]*)?-r[0-9]+$`).MatchString(info) {
			t.Errorf("apk does not know the version in\n%s", info)
		}
		for _, want := range append([]string{"/etc/init.d/toolsrv", "/.pre-install", "/.post-upgrade", "/.pre-deinstall"}, installed...) {
			switch h := found[want]; {
			case h == nil:
				t.Errorf("%s: %s is missing", arch, want)
			case h.Uname != "root" && h.Uid != 0:
				t.Errorf("%s: %s belongs to %s", arch, want, h.Uname)
			case (want == "/etc/init.d/toolsrv" || strings.HasPrefix(want, "/.p")) && h.Mode&0o111 == 0:
				t.Errorf("%s: %s can't be run", arch, want)
			}
		}
		for _, other := range units {
			if found[other] != nil {
				t.Errorf("%s has %s, and Alpine has no systemd", arch, other)
			}
		}
	}
}

// TestTimes checks that each file of a package has the commit's time, since packages must not depend on the machine that builds them.
func TestTimes(t *testing.T) {
	t.Parallel()
	text, err := exec.CommandContext(t.Context(), "git", "show", "--no-patch", "--format=%cI", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.Parse(time.RFC3339, strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	list := output(t, "rpm", "-qp", "--queryformat", "%{BUILDTIME}\n[%{FILEMTIMES}\n]", filepath.Join(packages(t), "toolsrv_linux_amd64.rpm"))
	for got := range strings.FieldsSeq(list) {
		if want := strconv.FormatInt(at.Unix(), 10); got != want {
			t.Errorf("a time is %s, want %s", got, want)
		}
	}
}
