package project

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/script"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/toolfile"
)

// maxModule is the size of the largest module that a server accepts.
const maxModule = 64 << 20

// Compile runs the project's compiler and returns the module. In a plain project, the module gets the manifest from its manifestFile. Otherwise the
// module returns its manifest itself (toolsrv_describe), or the compiler has already put it in. The compiler's output goes to stderr unchanged, in
// color if that is a terminal. The compiler, and everything that it has started, ends when ctx does. A script needs no compiler: Compile sets its
// Inputs, and an error can be shown to its author unchanged.
func (p *Project) Compile(ctx context.Context, stderr io.Writer) ([]byte, error) {
	if p.Script != "" {
		module, inputs, err := script.Build(ctx, p.Script, script.Options{With: p.With})
		p.Inputs = inputs
		return module, err
	}
	var said []byte // the manifest
	if p.Plain {    // read before compiling, which takes longer
		var err error
		if said, err = p.readManifest(); err != nil {
			return nil, err
		}
	}
	temp, err := os.MkdirTemp("", "toolsrv-build-")
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", p.Name, err)
	}
	defer os.RemoveAll(temp)
	file := filepath.Join(temp, "module.wasm")
	c := compiler{project: p, temp: temp, stderr: stderr}
	switch p.Language {
	case Rust:
		file, err = c.cargo(ctx)
	case TinyGo:
		err = c.tinygo(ctx, file)
	default:
		err = c.golang(ctx, file)
	}
	if err != nil {
		return nil, err
	}
	module, err := readBounded(file, maxModule)
	if err != nil {
		return nil, fmt.Errorf("read the compiler's output: %w", err)
	}
	parsed, err := wasmbin.Parse(module)
	if err != nil {
		return nil, fmt.Errorf("the compiler's output is not a module: %w", err)
	}
	_, reactor := parsed.Export("toolsrv_call")
	switch {
	case p.Plain && reactor:
		return nil, fmt.Errorf("%s uses the SDK, which makes the manifest, and there is a %s as well: remove one of them", p.Dir, manifestFile)
	case p.Plain:
		return wasmbin.SetCustom(module, manifest.Section, said)
	case !reactor:
		return nil, p.notATool()
	}
	return module, nil
}

// notATool explains why a module can't be called.
func (p *Project) notATool() error {
	how := "import github.com/toolsrv/toolsrv/sdk/go, and set a package-level variable to what toolsrv.Export returns"
	if p.Language == Rust {
		how = "depend on the crate toolsrv, and end the source with toolsrv::export!"
	}
	return fmt.Errorf("%s compiles, but it is not a tool (nothing exports toolsrv_call): %s; "+
		"or, for a program that reads JSON from standard input and writes JSON to standard output, put its manifest beside it as %s",
		p.Dir, how, manifestFile)
}

func (p *Project) readManifest() ([]byte, error) {
	file := filepath.Join(p.Dir, manifestFile)
	text, err := readBounded(file, manifest.Max)
	if err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // some editors write this byte order mark, which JSON does not allow
	m, err := toolfile.ParseManifest(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(m.Tools) != 1 {
		return nil, fmt.Errorf("%s: it declares %d tools, but a plain program can be only one: keep one of them", file, len(m.Tools))
	}
	return text, nil
}

func readBounded(file string, limit int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("%s is larger than the limit of %s", file, text.Size(limit))
	}
	return content, err
}

// A compiler builds one project.
type compiler struct {
	project *Project
	temp    string // a folder for temporary files, since an interrupted compiler does not always clean up
	stderr  io.Writer
}

// run runs a program in the project's folder until it ends or ctx does. If stdout is nil, the output goes to stderr.
func (c *compiler) run(ctx context.Context, env []string, stdout io.Writer, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = c.project.Dir
	cmd.Env = append(os.Environ(), "TMPDIR="+c.temp, "TMP="+c.temp, "TEMP="+c.temp)
	cmd.Env = append(cmd.Env, env...)
	cmd.Stdout, cmd.Stderr = stdout, c.stderr
	if stdout == nil {
		cmd.Stdout = c.stderr
	}
	release := group(cmd)
	err := cmd.Run()
	release()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &exit):
		return fmt.Errorf("%s does not compile: %s ended with %s", c.project.Dir, program, exit.ProcessState)
	case errors.Is(err, exec.ErrWaitDelay): // the compiler succeeded, but has left a process running that could still write output
		return nil
	case err != nil:
		return fmt.Errorf("run %s: %w", program, err)
	}
	return nil
}

// find returns an error if a compiler is missing, which says how to get it.
func find(program, remedy string) error {
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("%s is not installed, or its folder is not in PATH: %s", program, remedy)
	}
	return nil
}
