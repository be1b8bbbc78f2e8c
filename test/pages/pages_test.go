// Package pages_test runs all commands of the pages for authors of tools, one page for each language, and compares what they
// print with what the pages show. Package test/rust/page runs the page for Rust.
package pages_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/enginetest"
	"github.com/toolsrv/toolsrv/internal/testkit/pagetest"
)

func TestPages(t *testing.T) {
	t.Parallel()
	testkit.NeedBuild(t, "curl")
	for _, page := range []string{"tools.md", "go.md", "abi.md", "start.md", "coming-from.md"} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			s := pagetest.NewShell(t)
			putDownload(t, s.Dir)
			s.Follow(page, released(t))
		})
	}
}

// putDownload puts a download into a folder: one of the files that checksums.txt lists.
func putDownload(t *testing.T, folder string) {
	t.Helper()
	const archive = "an archive"
	testkit.Put(t, folder, "toolsrv_linux_amd64.tar.gz", archive)
	testkit.Put(t, folder, "checksums.txt", fmt.Sprintf("%x  toolsrv_linux_amd64.tar.gz\n%064x  toolsrv_windows_amd64.zip\n", sha256.Sum256([]byte(archive)), 0))
}

// TestPythonPage also runs the page's test with an ordinary Python.
func TestPythonPage(t *testing.T) {
	t.Parallel()
	testkit.NeedBuild(t)
	enginetest.Need(t, "python")
	s := pagetest.NewShell(t)
	s.Follow("python.md", strings.NewReplacer())
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skipf("there is no python3 to run the page's test with: %v", err)
	}
	s.Env = append(s.Env, "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH="+absolute(t, "../../sdk/python"))
	const program = `import test_tools; ` +
		`ran = [test() for name, test in vars(test_tools).items() if name.startswith("test_")]; print(len(ran), "ran")`
	s.Compare("python.md", "python3 -c '"+program+"'", "2 ran")
}

// TestCapabilitiesPage runs the page about capabilities, for operators and authors.
func TestCapabilitiesPage(t *testing.T) {
	t.Parallel()
	testkit.NeedBuild(t, "curl")
	enginetest.Need(t, "python")
	pagetest.NewShell(t).Follow("capabilities.md", strings.NewReplacer())
}

// TestJavaScriptPage also runs the page's test with Node. It uses the examples' packages.
func TestJavaScriptPage(t *testing.T) {
	t.Parallel()
	testkit.NeedBuild(t)
	enginetest.Need(t, "javascript")
	packages := absolute(t, "../../examples/node_modules")
	if _, err := os.Stat(packages); err != nil {
		t.Skip("there are no packages of npm: make examples-npm installs them")
	}
	s := pagetest.NewShell(t)
	s.Follow("javascript.md", strings.NewReplacer("npm install zod\n", "ln -s "+packages+" node_modules\n"))
	if _, err := exec.LookPath("node"); err != nil {
		t.Skipf("there is no node to run the page's test with: %v", err)
	}
	s.Compare("javascript.md", "node --import toolsrv/register --test capital.test.js", "...pass 1...fail 0...")
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// released returns a function that replaces the released SDKs in a page with the SDKs of this tree.
func released(t *testing.T) *strings.Replacer {
	t.Helper()
	const sdk = "github.com/toolsrv/toolsrv/sdk/go"
	return strings.NewReplacer("go get "+sdk+"\n", "go mod edit -require="+sdk+"@v0.1.0 -replace="+sdk+"="+absolute(t, "../../sdk/go")+"\n")
}

// TestPageOfEachLanguage checks that tools.md links to a page for each language, and each page links back.
func TestPageOfEachLanguage(t *testing.T) {
	t.Parallel()
	common := string(testkit.Read(t, "../../docs/tools.md"))
	for _, page := range []string{"python.md", "javascript.md", "go.md", "rust.md", "abi.md"} {
		if !strings.Contains(common, "]("+page) {
			t.Errorf("docs/tools.md does not link to %s", page)
		}
		text, err := os.ReadFile(filepath.Join("../../docs", page))
		if err != nil {
			t.Error(err)
		} else if !strings.Contains(string(text), "](tools.md") {
			t.Errorf("docs/%s does not link to tools.md", page)
		}
	}
}
