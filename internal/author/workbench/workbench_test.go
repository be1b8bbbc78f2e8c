package workbench_test

import (
	"bytes"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/author/workbench"
	"github.com/toolsrv/toolsrv/internal/capability/files"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
)

const manifest = `{"abi":1,"namespace":"shop","tools":[
	{"name":"echo","description":"Gives back what it gets.","parameters":{"type":"object","properties":{"n":{"type":"integer","default":1}}},
		"examples":[{"arguments":{"n":2},"result":{"n":2}}]},
	{"name":"refuse","description":"Fails.","parameters":{"type":"object"}}]}`

// open opens the guest for end-to-end tests as a file in a tools directory.
func open(t *testing.T, o workbench.Options) (*workbench.File, error) {
	t.Helper()
	o.Config = config.Default()
	o.Config.Tools.Directory = t.TempDir()
	o.Config.Tools.CacheDir = t.TempDir()
	o.Logger = slog.New(slog.DiscardHandler)
	module := sandboxtest.WithManifest(t, testkit.Fixture(t, "e2e/guest"), manifest)
	f, err := workbench.Open(t.Context(), testkit.Put(t, o.Config.Tools.Directory, "shop.wasm", module), o)
	if err == nil {
		t.Cleanup(f.Close)
	}
	return f, err
}

func TestFile(t *testing.T) {
	t.Parallel()
	compiling := 0
	f, err := open(t, workbench.Options{
		Limits:    limits.Limits{Input: 100},
		Compiling: func(size int) (done func()) { compiling = size; return func() { compiling = -compiling } },
	})
	if err != nil {
		t.Fatal(err)
	}
	if f.Size == 0 || compiling != -f.Size || f.Load <= 0 || f.Compile <= 0 {
		t.Errorf("got %d bytes, loaded in %s, compiled in %s, told of %d bytes", f.Size, f.Load, f.Compile, compiling)
	}
	echo, err := f.Pick("/shop/echo")
	if err != nil {
		t.Fatal(err)
	}
	var times wasmtools.Times
	if got, err := f.Call(t.Context(), echo, &wasmtools.Call{Arguments: []byte("{}"), Times: &times}); err != nil || string(got) != `{"n":1}` || times.Run <= 0 {
		t.Errorf("got %s, %v in %+v, want the arguments with their default", got, err, times)
	}
	var failed *wasmtools.Error
	if _, err := f.Call(t.Context(), echo, &wasmtools.Call{Arguments: []byte(`{"n":"` + strings.Repeat("x", 100) + `"}`)}); !errors.As(err, &failed) || failed.Code != wasmtools.CodeInputTooLarge {
		t.Errorf("got %v, want the limit of the options", err)
	}
	var trials []toolfile.Trial
	f.TryExamples(t.Context(), func(trial toolfile.Trial) { trials = append(trials, trial) })
	if len(trials) != 1 || trials[0].Problem != "" || trials[0].Took > time.Minute {
		t.Errorf("got %+v, want one example that passes", trials)
	}
}

func TestPick(t *testing.T) {
	t.Parallel()
	f, err := open(t, workbench.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"echo":        "/shop/echo",
		"shop/refuse": "/shop/refuse",
		"":            "!has several tools: name one of them (echo, refuse)",
		"ecko":        `!has no tool "ecko": it has echo, refuse`,
	} {
		tool, err := f.Pick(name)
		if says, refused := strings.CutPrefix(want, "!"); refused {
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%q: got %v, want an error with %q", name, err, says)
			}
		} else if err != nil || tool.Path() != want {
			t.Errorf("%q: got %v, %v, want %s", name, tool, err, want)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Tools.CacheDir = t.TempDir()
	const missing = "no/such/file.wasm"
	if _, err := workbench.Open(t.Context(), missing, workbench.Options{Config: c, Logger: slog.New(slog.DiscardHandler)}); err == nil || !strings.Contains(err.Error(), "file.wasm") {
		t.Errorf("got %v, want an error that names the file", err)
	}
}

// TestFolderMissing opens a tool whose granted folder does not exist: the tool itself could only say that its file is missing.
func TestFolderMissing(t *testing.T) {
	t.Parallel()
	module := sandboxtest.WithManifest(t, testkit.Fixture(t, "e2e/guest"), strings.Replace(manifest, `"tools":`, `"needs":{"files":["geo"]},"tools":`, 1))
	dir := t.TempDir()
	for folder, want := range map[string]string{dir: "", filepath.Join(dir, "none"): `msg="a grant: its path can't be opened`} {
		var log bytes.Buffer
		o := workbench.Options{Config: config.Default(), Logger: slog.New(slog.NewTextHandler(&log, nil))}
		o.Config.Tools.Directory, o.Config.Tools.CacheDir = t.TempDir(), t.TempDir()
		o.Config.Grants = []config.Grant{{Match: "shop/*", Rules: capability.Rules{"files": &files.Rule{Directories: map[string]string{"geo": folder}}}}, {Match: "other/*", Rules: capability.Rules{"files": &files.Rule{Directories: map[string]string{"maps": "/none"}}}}}
		f, err := workbench.Open(t.Context(), testkit.Put(t, dir, "shop.wasm", module), o)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if got := log.String(); want == "" && got != "" || !strings.Contains(got, want) || want != "" && !strings.Contains(got, "key=grant[0].files.geo") {
			t.Errorf("with the folder %s: got the log %q, want %q in it", folder, got, want)
		}
	}
}
