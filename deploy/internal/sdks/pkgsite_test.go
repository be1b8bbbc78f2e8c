package sdks_test

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// pkgsite is the program of pkg.go.dev.
const pkgsite = "golang.org/x/pkgsite/cmd/pkgsite@v0.6.0"

// patience limits the wait for a server to listen.
const patience = 2 * time.Minute

// TestPkgsite runs the program of pkg.go.dev on both modules that others import. The program gets them from a proxy, and finds the README, a
// licence that allows it to show the documentation, and a synopsis for each package.
func TestPkgsite(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds pkgsite")
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	modules := map[string]string{"github.com/toolsrv/toolsrv": "", "github.com/toolsrv/toolsrv/sdk/go": "sdk/go"} // the folder of each
	proxy := t.TempDir()
	const version = "v0.99.0"
	for path, folder := range modules {
		var archive bytes.Buffer
		if err := zip.CreateFromVCS(&archive, module.Version{Path: path, Version: version}, root, "HEAD", folder); err != nil {
			t.Fatal(err)
		}
		info := `{"Version": "` + version + `", "Time": "2026-01-02T15:04:05Z"}`
		mod := output(t, root, nil, "git", "show", "HEAD:"+filepath.ToSlash(filepath.Join(folder, "go.mod")))
		for name, content := range map[string]string{
			"@latest": info, "@v/list": version + "\n", "@v/" + version + ".info": info, "@v/" + version + ".mod": mod, "@v/" + version + ".zip": archive.String(),
		} {
			put(t, filepath.Join(proxy, filepath.FromSlash(path), filepath.FromSlash(name)), []byte(content))
		}
	}
	site := startPkgsite(t, proxy)
	for path, folder := range modules {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			page := site(t, path+"@"+version)
			for what, form := range map[string]string{
				"a README":  `data-test-id="Unit-readmeContent"`,
				"a licence": `data-test-id="UnitHeader-license"[^>]*>Apache-2\.0</a>`,
				"a source":  `<a href="https://github\.com/toolsrv/toolsrv"`,
			} {
				if !regexp.MustCompile(form).MatchString(page) {
					t.Errorf("the page has no %s: nothing matches %s", what, form)
				}
			}
			want := packagesOf(t, filepath.Join(root, filepath.FromSlash(folder)))
			got := map[string]string{}
			_, table, _ := strings.Cut(page, `data-test-id="UnitDirectories-table"`)
			for _, row := range regexp.MustCompile(`(?s)<a href="/([^"]+)">.*?UnitDirectories-desktopSynopsis">([^<]*)<`).FindAllStringSubmatch(table, -1) {
				got[strings.Replace(row[1], "@"+version, "", 1)] = html.UnescapeString(row[2])
			}
			for _, name := range slices.Sorted(maps.Keys(want)) {
				if name != path && got[name] != want[name] {
					t.Errorf("%s has the synopsis %q, want %q", name, got[name], want[name])
				}
				own := site(t, strings.Replace(name, path, path+"@"+version, 1))
				if !strings.Contains(own, `id="section-documentation"`) || !strings.Contains(own, ">Apache-2.0</a>") {
					t.Errorf("%s is shown without documentation or licence", name)
				}
			}
			if len(want) < 8 {
				t.Errorf("the module has %d packages, want at least 8", len(want))
			}
		})
	}
}

// packagesOf returns the synopsis of each package of a module that others can import or run.
func packagesOf(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for line := range strings.Lines(output(t, folder, []string{"GOFLAGS=", "GOWORK=off"}, "go", "list", "-f", "{{if .GoFiles}}{{.ImportPath}}\t{{.Doc}}{{end}}", "./...")) {
		path, synopsis, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if path != "" && !slices.Contains(strings.Split(path, "/"), "internal") {
			found[path] = synopsis
		}
	}
	return found
}

// startPkgsite builds pkgsite, runs it on a folder with the layout of a proxy, and returns a function that gets a page.
func startPkgsite(t *testing.T, proxy string) func(t *testing.T, path string) string {
	t.Helper()
	bin := t.TempDir()
	output(t, bin, []string{"GOBIN=" + bin, "GOWORK=off"}, "go", "install", pkgsite)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String() // pkgsite does not print its address if it listens at :0
	_ = l.Close()
	modules := httptest.NewServer(http.FileServer(http.Dir(proxy)))
	t.Cleanup(modules.Close)
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "pkgsite"), "-proxy", "-http", address)
	// pkgsite would also ask other sites about the module. It can't, since nobody listens at this proxy.
	cmd.Env = append(cmd.Environ(), "GOPROXY="+modules.URL, "HTTPS_PROXY=http://127.0.0.1:1", "NO_PROXY=127.0.0.1")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("pkgsite says:\n%s", &said)
		}
	})
	get := func(path string) (string, error) {
		a, err := http.Get(fmt.Sprintf("http://%s/%s", address, path))
		if err != nil {
			return "", err
		}
		defer a.Body.Close()
		text, err := io.ReadAll(a.Body)
		if err == nil && a.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", path, a.Status)
		}
		return string(text), err
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) { // until it listens
		if _, err := get(""); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	return func(t *testing.T, path string) string {
		t.Helper()
		page, err := get(path)
		if err != nil {
			t.Fatal(err)
		}
		return page
	}
}
