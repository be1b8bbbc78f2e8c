// Package foreign_test builds and runs the tool in docs/coming-from.md as the page shows it for other tool servers, and compares those
// servers' answers with toolsrv's. make test-foreign installs the servers, and runs this test. Wassette and hyper-mcp themselves are not
// run: no package registry has Wassette for every Linux, or a build of hyper-mcp. Wasmtime and Extism, on which they are based, run their
// tools instead.
package foreign_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/pagetest"
)

// texts are the texts whose words are counted, and counts the right numbers.
var (
	texts  = []string{"to be or not to be", "", " naïve\tcafé\n", "один два три"}
	counts = []int{6, 0, 2, 3}
)

// goPDK and goPDKSum are the lines about the PDK that go get would write to go.mod and go.sum. They are given
// here because tests of pages don't ask a proxy for versions.
const (
	goPDK    = "github.com/extism/go-pdk v1.1.3"
	goPDKSum = "github.com/extism/go-pdk v1.1.3 h1:hfViMPWrqjN6u67cIYRALZTZLk/enSPpNKa+rZ9X2SQ=\n" +
		"github.com/extism/go-pdk v1.1.3/go.mod h1:Gz+LIU/YCKnKXhgge8yo5Yu1F/lbv7KtKFkiCSzW/P4=\n"
)

// A page is docs/coming-from.md with its files written.
type page struct {
	shell *pagetest.Shell
	text  string
	bin   string // the folder of the other projects' programs
}

func TestComingFrom(t *testing.T) {
	bin := os.Getenv("FOREIGN")
	if bin == "" {
		t.Skip("FOREIGN is not set: make test-foreign installs other tool servers, and runs this")
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	p := &page{pagetest.NewShell(t), string(testkit.Read(t, "../../docs/coming-from.md")), bin}
	p.shell.Env = append(p.shell.Env, "GOPROXY="+os.Getenv("GOPROXY")) // for Extism's package
	for _, block := range pagetest.Blocks(p.text) {
		if block.File != "" {
			p.put(t, block.File, block.Text)
		}
	}
	t.Run("toolsrv in Python", p.toolsrvPython)
	t.Run("toolsrv in Go", p.toolsrvGo)
	t.Run("FastMCP", func(t *testing.T) { p.others(t, "fastmcp", "server.py") })
	t.Run("mcpo", p.mcpo)
	t.Run("Extism", func(t *testing.T) { p.others(t, "extism", p.plugin(t, "plugin")) })
	t.Run("a plug-in for hyper-mcp", func(t *testing.T) { p.others(t, "hyper", p.plugin(t, "hyper")) })
	t.Run("a component for Wassette", p.component)
}

func (p *page) put(t *testing.T, name, content string) {
	t.Helper()
	file := filepath.Join(p.shell.Dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// command returns the page's command in backticks that begins with a word.
func (p *page) command(t *testing.T, word string) string {
	t.Helper()
	found := regexp.MustCompile("`(" + word + " [^`]+)`").FindStringSubmatch(p.text)
	if found == nil {
		t.Fatalf("the page has no command %s", word)
	}
	return found[1]
}

func (p *page) sh(t *testing.T, script string) {
	t.Helper()
	if out, err := p.shell.Command("set -eu\n" + script).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

func compare(t *testing.T, got []int) {
	t.Helper()
	if !slices.Equal(got, counts) {
		t.Errorf("got %d words, want %d", got, counts)
	}
}

// others runs others.py, which calls the tool of one of the servers.
func (p *page) others(t *testing.T, what string, arguments ...string) {
	t.Helper()
	ask, err := filepath.Abs("others.py")
	if err != nil {
		t.Fatal(err)
	}
	input, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(p.bin, "python"), append([]string{ask, what}, arguments...)...)
	cmd.Dir, cmd.Env, cmd.Stdin = p.shell.Dir, p.shell.Env, bytes.NewReader(input)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	var got []int
	if err != nil || json.Unmarshal(out, &got) != nil {
		t.Fatalf("%v: %s\n%s", err, out, said.String())
	}
	compare(t, got)
}

// plugin builds an Extism plug-in in Go.
func (p *page) plugin(t *testing.T, folder string) string {
	t.Helper()
	p.put(t, folder+"/go.mod", "module example.com/words\n\ngo 1.24\n\nrequire "+goPDK+"\n")
	p.put(t, folder+"/go.sum", goPDKSum)
	p.sh(t, "cd "+folder+" && GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o ../"+folder+".wasm .")
	return folder + ".wasm"
}

func (p *page) component(t *testing.T) {
	p.sh(t, p.command(t, "componentize-py"))
	p.others(t, "component", "words.wasm")
}

func (p *page) mcpo(t *testing.T) {
	// It prints its address only once it listens.
	serve := strings.Replace(p.command(t, "mcpo"), "--port 8000", "--host 127.0.0.1 --port 0", 1)
	p.served(t, serve, regexp.MustCompile(`running on http://(\S+)`), "/count_words")
}

func (p *page) toolsrvPython(t *testing.T) {
	p.sh(t, "mkdir python && cp words.py python")
	p.toolsrv(t, "python")
}

func (p *page) toolsrvGo(t *testing.T) {
	sdk, err := filepath.Abs("../../sdk/go")
	if err != nil {
		t.Fatal(err)
	}
	const path = "github.com/toolsrv/toolsrv/sdk/go"
	p.put(t, "tool/go.mod", "module example.com/words\n\ngo 1.24\n\nrequire "+path+" v0.1.0\n\nreplace "+path+" => "+sdk+"\n")
	p.sh(t, "mkdir go && cd tool && toolsrv build . -o ../go/words.wasm")
	p.toolsrv(t, "go")
}

func (p *page) toolsrv(t *testing.T, folder string) {
	serve := strings.Replace(p.command(t, "toolsrv up"), " tools", " "+folder+" --address 127.0.0.1:0", 1)
	p.served(t, serve, regexp.MustCompile(`"msg":"listening","address":"([^"]+)"|REST +http://([^/ ]+)`), "/text/count_words")
}

// served starts a server, which prints its address, and calls its tool.
func (p *page) served(t *testing.T, command string, address *regexp.Regexp, path string) {
	t.Helper()
	server := p.shell.Command("exec " + command)
	log, err := server.StderrPipe()
	if err == nil {
		server.Stdout = server.Stderr
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill() // the process may have ended already
		_ = server.Wait()
	})
	var seen bytes.Buffer
	at := ""
	for lines := bufio.NewScanner(io.TeeReader(log, &seen)); at == "" && lines.Scan(); {
		if m := address.FindStringSubmatch(lines.Text()); m != nil {
			at = strings.Join(m[1:], "")
		}
	}
	if at == "" {
		t.Fatalf("%s does not say where it listens:\n%s", command, seen.String())
	}
	go io.Copy(io.Discard, log) // until the process ends
	var got []int
	for _, text := range texts {
		got = append(got, post(t, "http://"+at+path, text))
	}
	compare(t, got)
}

// post repeats a request until there is an answer, since the tool may not be ready yet.
func post(t *testing.T, url, text string) (words int) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		answer, err := http.Post(url, "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err == nil && answer.StatusCode == http.StatusOK && json.Unmarshal(said, &words) == nil {
			return words
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %s %s %v", url, answer.Status, said, err)
		}
	}
}
