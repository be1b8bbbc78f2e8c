package weigh_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	apart "github.com/toolsrv/toolsrv/internal/runtime/compile"
	"github.com/toolsrv/toolsrv/internal/runtime/instrument"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// A child process compiles one module, so that what it took can be measured.
const child = "TOOLSRV_WEIGH_CHILD"

func TestMain(m *testing.M) {
	if file := os.Getenv(child); file != "" {
		compile(file)
		return
	}
	if len(os.Args) == 3 && os.Args[1] == helper {
		if err := apart.Serve(os.Args[2:], os.Stdin, os.Stdout); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// helper is the argument with which this program is a process that compiles for a server.
const helper = "compile-module"

// within compiles a module in a separate process, as a server would. It fails unless the module is compiled, or refused for its cost.
func within(t *testing.T, r *instrument.Rewritten) error {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := apart.NewPool(apart.Config{Command: []string{self, helper}, Each: 1 << 30})
	if err != nil {
		t.Skip(err)
	}
	defer p.Close()
	_, err = p.Compile("", r.Module, apart.Limit{CPU: 5*time.Second + 4*r.Weight.Time()})
	if _, much := errors.AsType[*apart.TooMuch](err); err != nil && !much {
		t.Errorf("in a process of its own: %v", err)
	}
	return err
}

// Taken is what compiling took.
type taken struct {
	CPU   time.Duration
	Bytes int64 // most resident bytes, less those from before
	Error string
}

func compile(file string) {
	module, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	r := wazero.NewRuntimeWithConfig(context.Background(), wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2).WithDebugInfoEnabled(false))
	before := usage()
	_, err = r.CompileModule(context.Background(), module)
	t := usage()
	t.CPU -= before.CPU
	t.Bytes -= before.Bytes
	if err != nil {
		t.Error = err.Error()
	}
	if err := json.NewEncoder(os.Stdout).Encode(t); err != nil {
		panic(err)
	}
}

func usage() taken {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	// Getrusage reports the parent's maximum if that was larger.
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	_, line, _ := bytes.Cut(status, []byte("VmHWM:"))
	var kilobytes int64
	if _, err := fmt.Sscan(string(line), &kilobytes); err != nil {
		panic(err)
	}
	return taken{CPU: time.Duration(u.Utime.Nano() + u.Stime.Nano()), Bytes: kilobytes << 10}
}

// measure compiles a rewritten module in a process of its own.
func measure(t *testing.T, module []byte) taken {
	t.Helper()
	testkit.SkipEmulated(t, "the test can't start the process that compiles")
	file := t.TempDir() + "/module.wasm"
	if err := os.WriteFile(file, module, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), child+"="+file)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("compile: %v\n%s", err, errs.String()[:min(errs.Len(), 2000)])
	}
	var got taken
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(fmt.Errorf("read what it took: %w", err))
	}
	return got
}
