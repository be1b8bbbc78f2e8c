//go:build unix

package main_test

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestCost measures commands that run no tool: nobody should wait for them, nor need memory for what they don't use. A machine that does other
// things, too, gives each several chances.
func TestCost(t *testing.T) {
	testkit.SkipEmulated(t, "the figures would be its own")
	if testkit.Race {
		t.Skip("takes twice as much of all with -race")
	}
	const (
		time20   = 20 * time.Millisecond
		memory30 = 30 << 20
	)
	// On disk, making a file takes long where other tests have just removed many.
	dir, err := os.MkdirTemp("/dev/shm", "cost")
	if err != nil { // this system has none
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
	for _, c := range []struct {
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
	} {
		t.Run(c.name, func(t *testing.T) {
			fastest, least := time.Duration(0), int64(0)
			for began := time.Now(); fastest == 0 || (fastest > time20 || least > memory30) && time.Since(began) < patience/2; {
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
				memory := peak(t, fresh())
				if fastest == 0 || took < fastest {
					fastest = took
				}
				if least == 0 || memory < least {
					least = memory
				}
			}
			t.Logf("%v, %.1f MiB", fastest.Round(100*time.Microsecond), float64(least)/(1<<20))
			if fastest > time20 || least > memory30 {
				t.Errorf("it takes %v and %.1f MiB, more than %v or %d MiB", fastest, float64(least)/(1<<20), time20, memory30>>20)
			}
		})
	}
}

// TestNoTemplates makes sure that the program has no template that calls methods by name: the linker would keep every exported method of every
// type for it, which are 5.7 MB.
func TestNoTemplates(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the symbols of other systems are in other forms")
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

// TestStatic makes sure that make build makes what the tests run, a program that asks for no library of the system.
func TestStatic(t *testing.T) {
	t.Parallel()
	testkit.NeedBuild(t, "make")
	make := exec.CommandContext(t.Context(), "make", "--no-print-directory", "-n", "build") // it may be another make that runs the tests
	make.Dir = "../.."
	out, err := make.Output()
	if err != nil || !regexp.MustCompile(`(?m)^CGO_ENABLED=0 go build .*-tags=grpcnotrace .* \./cmd/toolsrv$`).Match(out) {
		t.Errorf("make build runs %s (%v)", out, err)
	}
	if runtime.GOOS != "linux" || testkit.Race {
		t.Skip("only Linux has such programs, and only without -race")
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
