//go:build unix

package main_test

import (
	"crypto/sha256"
	"debug/elf"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/certtest"
	"github.com/toolsrv/toolsrv/internal/testkit/ocitest"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
)

// TestCost measures commands that run no tool: they should be quick, and need no memory for parts that they don't use. Each command gets several
// tries.
func TestCost(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: not with -short")
	}
	testkit.SkipEmulated(t, "the emulator would be measured")
	if testkit.Race(t) {
		t.Skip("with -race, commands take twice the time and memory")
	}
	// The commands that run modules, compile, or run until they are stopped.
	working := []string{"bench", "build", "call", "check", "dev", "openapi", "pack", "test", "top", "up"}
	const (
		// Processor time, so that other work of the machine does not count. The bar is 20 ms, which all commands meet on a quiet machine; if other
		// programs keep its memory busy, the same commands take up to 28 ms.
		time30   = 30 * time.Millisecond
		waited   = 300 * time.Millisecond // in all
		memory30 = 30 << 20
	)
	// On disk, making a file takes long if other tests have just removed many.
	dir, err := os.MkdirTemp("/dev/shm", "cost")
	if err != nil { // this system has no such folder
		dir = t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	// How much of a file the system maps at once depends on how it was written: the linker's output and copies of it differ by 4 MiB. In memory, all
	// files are alike.
	program := filepath.Join(dir, filepath.Base(binary))
	if err := os.WriteFile(program, testkit.Read(t, binary), 0o700); err != nil {
		t.Fatal(err)
	}
	s, folder, host := answering(t)
	reference := "oci://" + host + "/shop:1.2.0"
	tool, config := filepath.Join(folder, "tools", "shop.wasm"), filepath.Join(folder, "toolsrv.toml")
	private, public := filepath.Join(folder, "acme.key"), filepath.Join(folder, "acme.pub")
	older := fmt.Sprintf("%x", sha256.Sum256(testkit.Read(t, folder, "older.wasm")))
	ask := func(args ...string) []string { return append(args, "--config", config) }
	cases := []struct {
		name string
		args []string
		code int
	}{
		{"nothing", nil, 2},
		{"version", []string{"version"}, 0},
		{"version as JSON", []string{"version", "--json"}, 0},
		{"licenses", []string{"licenses"}, 0},
		{"help", []string{"help"}, 0},
		{"help of a command", []string{"up", "--help"}, 0},
		{"completion", []string{"completion", "bash"}, 0},
		{"a completed word", []string{"__complete", "ne"}, 0},
		{"an unknown command", []string{"publish"}, 2},
		{"new", []string{"new", "@", "--lang", "go"}, 0},
		{"init", []string{"init", "@"}, 0},
		{"cache", []string{"cache", "@"}, 0},
		{"inspect", []string{"inspect", tool}, 0},
		{"inspect of a registry", []string{"inspect", reference}, 0},
		{"settings of a client", []string{"mcp", filepath.Dir(tool), "--print-config", "claude-code"}, 0},
		{"push", []string{"push", tool, reference + "-again"}, 0},
		{"pull", []string{"pull", reference, "-o", "@"}, 0},
		{"pull of a signed artifact", []string{"pull", reference, "-o", "@", "--key", public}, 0},
		{"sign", []string{"sign", reference + "-again", "--key", private}, 0},
		{"verify", []string{"verify", reference, "--key", public}, 0},
		{"search", []string{"search", host}, 0},
		{"lock", ask("lock"), 0},
		{"update", ask("update", "--dry-run"), 0},
		{"status", ask("status"), 0},
		{"tools", ask("tools"), 0},
		{"tokens", ask("tokens", "list"), 0},
		{"secrets", ask("secrets", "list"), 0},
		{"kv", ask("kv", "list"), 0},
		{"self", ask("self"), 0},
		{"reach", ask("reach"), 0},
		{"explain", ask("explain", "ann", "shop/echo"), 0},
		{"audit", ask("audit"), 0},
		{"audit verify", ask("audit", "verify"), 0},
		{"state backup", ask("state", "backup", "@"), 0},
		{"switches", ask("switches"), 0},
		{"disable", ask("disable", "a/gets"), 0},
		{"enable", ask("enable", "a/gets"), 0},
		{"reset", ask("reset", "a/gets"), 0},
		{"put", ask("put", tool), 0},
		{"rollback", ask("rollback", "b.wasm", older), 0},
		{"remove", ask("remove", "b.wasm", "--dry-run"), 0},
		{"reload", ask("reload"), 0},
		{"events", ask("events"), 0},
		{"goroutines", ask("goroutines"), 0},
		{"slow", ask("slow"), 0},
		{"refused", ask("refused"), 0},
		{"history", ask("history"), 0},
		{"logs", ask("logs"), 0},
		{"ready", []string{"ready", s.url}, 0},
	}
	measured := map[string]bool{}
	for _, c := range cases {
		if c.args != nil {
			measured[c.args[0]] = true
		}
	}
	out, err := command("__complete", "").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if name, _, found := strings.Cut(line, "\t"); found && !measured[name] && !slices.Contains(working, name) {
			t.Errorf("the command %s is not measured: put it into the table, or into working with those that run modules or go on until they are stopped", name)
		}
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			const tries = 12
			fastest, cheapest, least := time.Hour, time.Hour, int64(math.MaxInt64)
			for try := 0; try < tries && (cheapest > time30 || fastest > waited || least > memory30); try++ {
				fresh := func() *exec.Cmd {
					args := append([]string{}, c.args...)
					for i, arg := range args {
						if arg == "@" {
							fresh, err := os.MkdirTemp(dir, "new")
							if err != nil {
								t.Fatal(err)
							}
							args[i] = filepath.Join(fresh, "greet")
						}
					}
					cmd := command(args...)
					cmd.Path = program
					return cmd
				}
				cmd := fresh()
				start := time.Now()
				err := cmd.Run()
				took := time.Since(start)
				if exit, ok := err.(*exec.ExitError); err != nil && (!ok || exit.ExitCode() != c.code) {
					t.Fatal(err)
				}
				fastest, least = min(fastest, took), min(least, peak(t, fresh()))
				cheapest = min(cheapest, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
			}
			t.Logf("%v, %v of a processor, %.1f MiB", fastest.Round(100*time.Microsecond), cheapest.Round(100*time.Microsecond), float64(least)/(1<<20))
			if cheapest > time30 || fastest > waited || least > memory30 {
				t.Errorf("it takes %v, %v of a processor, and %.1f MiB: more than %v of a processor, or %d MiB", fastest, cheapest, float64(least)/(1<<20), time30, memory30>>20)
			}
		})
	}
}

// answering starts a server for commands to ask, and a registry. It returns both, and the folder of the server's configuration. The folder also has
// the pair of keys with which an artifact that the server serves is signed, and older.wasm, an older version of a file that the server serves.
func answering(t *testing.T) (s *service, dir, host string) {
	t.Helper()
	host = ocitest.ServeReferrers(t).Host
	const manifest = `{"abi":1,"namespace":"a","tools":[{"name":"gets","description":"Gets.","parameters":{"type":"object"}}]}`
	shop, older := guest(t, "shop", "1.0.0", "echo"), guest(t, "b", "1.0.0", "echo")
	dir = site(t, "", map[string][]byte{"shop.wasm": shop, "a.wasm": sandboxtest.WithManifest(t, testkit.Fixture(t, "capability/kv"), manifest)})
	file, _ := certtest.KeyFiles(t, dir, certtest.NewKey(t))
	must := func(args ...string) {
		t.Helper()
		if out, err := command(args...).CombinedOutput(); err != nil {
			t.Fatalf("toolsrv %q: %v: %s", args, err, out)
		}
	}
	put(t, filepath.Join(dir, "older.wasm"), older)
	put(t, filepath.Join(dir, "newer.wasm"), guest(t, "b", "1.1.0", "echo"))
	must("push", filepath.Join(dir, "tools", "shop.wasm"), "oci://"+host+"/shop:1.2.0", "--sign", "--key", file)
	config := filepath.Join(dir, "toolsrv.toml")
	put(t, config, fmt.Appendf(nil, "[server]\naddress = \"127.0.0.1:0\"\n[tools]\ndirectory = \"tools\"\n[state]\ndirectory = \"state\"\n[admin]\nupload = true\n"+
		"[[source]]\nname = \"shop\"\noci = \"%s/shop\"\ntag = \"1.2.0\"\nprefix = \"from\"\n[[source.signer]]\nkey = \"acme.pub\"\n", host))
	s = run(t, command("openapi", "--config", config), false)
	s.waitCount("ready", 1)
	must("tokens", "add", "ann", "--scope", "*", "--config", config)
	for _, version := range []string{"older.wasm", "newer.wasm"} {
		must("put", filepath.Join(dir, version), "b.wasm", "--config", config)
	}
	return s, dir, host
}

// TestNoTemplates checks that the program has no template that calls methods by name. If there were one, the linker would have to keep every
// exported method of every type, which takes 5.7 MB.
func TestNoTemplates(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("other systems have symbols in other formats")
	}
	program, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	symbols, err := program.Symbols()
	if err != nil || len(symbols) < 10_000 {
		t.Fatalf("got %d symbols, %v", len(symbols), err)
	}
	for _, s := range symbols {
		if s.Name == "text/template.(*state).evalField" {
			t.Errorf("the program has %s: find out who uses text/template or html/template", s.Name)
		}
	}
}

// TestStatic checks that make build makes the program that the tests run, and that it needs no library of the system.
func TestStatic(t *testing.T) {
	t.Parallel()
	testkit.NeedBuild(t, "make")
	make := exec.CommandContext(t.Context(), "make", "--no-print-directory", "-n", "build") // another make may be running the tests
	make.Dir = "../.."
	out, err := make.Output()
	if err != nil || !regexp.MustCompile(`(?m)^CGO_ENABLED=0 GOGC=400 go build .*-tags=grpcnotrace .* \./cmd/toolsrv$`).Match(out) {
		t.Errorf("make build runs %s (%v)", out, err)
	}
	if runtime.GOOS != "linux" || testkit.Race(t) {
		t.Skip("only Linux has static programs, and only without -race")
	}
	program, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the program needs a dynamic linker")
		}
	}
	if libraries, err := program.ImportedLibraries(); err == nil && len(libraries) > 0 {
		t.Errorf("the program needs %q", libraries)
	}
}
