package project

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

const (
	wasmTarget = "wasm32-unknown-unknown"
	wasiTarget = "wasm32-wasip1"
)

var (
	// buildTarget matches the setting build.target of a Cargo configuration.
	buildTarget = regexp.MustCompile(`(?m)^\s*(?:build\.)?target\s*=\s*["'](wasm32-[a-z0-9-]+)["']`)
	// targetFlags matches the setting target.X.rustflags of a Cargo configuration, where X is a target of WebAssembly or a condition for it.
	targetFlags = regexp.MustCompile(`(?m)^\s*(?:\[\s*target\.` + wasmKey + `\s*\].*\n(?:[ \t]*[^\[\s].*\n|\s*\n)*?[ \t]*|target\.` + wasmKey + `\.)rustflags\s*=`)
)

const wasmKey = `(?:["']?wasm32-[a-z0-9-]+["']?|["']cfg\(.*wasm.*\)["'])`

// readCargo reads from the project's own .cargo/config.toml which WebAssembly target to build for, if it names one, and whether it has flags for such
// a target.
func (p *Project) readCargo() error {
	text, err := readBounded(filepath.Join(p.Dir, ".cargo", "config.toml"), 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read Cargo's configuration: %w", err)
	}
	if match := buildTarget.FindSubmatch(text); match != nil {
		p.target = string(match[1])
	}
	p.targetFlags = targetFlags.Match(text)
	return nil
}

// remap returns the environment and the arguments that make Cargo keep this machine's paths out of the module, where they would appear in panic
// messages. Cargo takes flags from only one place: RUSTFLAGS, the target, or the build. So our flags are added to those in force, in front of them
// if the order can be chosen, since the last one wins. Our flags are the same for all projects of a workspace, because Cargo compiles a crate again
// if its flags differ.
func (p *Project) remap(target, workspace string) (env, args []string) {
	home, _ := os.UserHomeDir() // "" if there is none
	cargoHome := os.Getenv("CARGO_HOME")
	if cargoHome == "" && home != "" {
		cargoHome = filepath.Join(home, ".cargo")
	}
	places := [][2]string{{home, "/home"}, {cargoHome, "/cargo"}, {workspace, "/src"}}
	dir, _ := filepath.EvalSymlinks(p.Dir) // as the compiler will see it
	if inside, err := filepath.Rel(workspace, dir); err != nil || !filepath.IsLocal(inside) {
		places = append(places, [2]string{dir, "/src"})
	}
	var flags []string
	for _, m := range places {
		if filepath.IsAbs(m[0]) && len(m[0]) > 1 {
			flags = append(flags, "--remap-path-prefix="+m[0]+"="+m[1])
		}
	}
	encoded, isEncoded := os.LookupEnv("CARGO_ENCODED_RUSTFLAGS")
	plain, isPlain := os.LookupEnv("RUSTFLAGS")
	switch {
	case isEncoded && encoded != "":
		flags = append(flags, encoded)
	case isEncoded:
	case isPlain:
		flags = append(flags, strings.Fields(plain)...)
	default:
		key := "build"
		if p.targetFlags {
			key = "target." + target
		}
		list, err := json.Marshal(flags) // this is also valid TOML
		if err != nil {
			return nil, nil
		}
		return nil, []string{"--config", key + ".rustflags=" + string(list)}
	}
	return []string{"CARGO_ENCODED_RUSTFLAGS=" + strings.Join(flags, "\x1f")}, nil
}

// cargo builds the package with Cargo and returns its .wasm file. Cargo's settings decide where that is.
func (c *compiler) cargo(ctx context.Context) (file string, err error) {
	if err := find("cargo", "install Rust from https://rustup.rs/"); err != nil {
		return "", err
	}
	target := c.project.target
	switch {
	case target != "":
	case c.project.Plain:
		target = wasiTarget
	default:
		target = wasmTarget
	}
	// Cargo's JSON messages are read while it runs, since there are too many to keep.
	reader, writer := io.Pipe()
	made := artifacts{manifest: filepath.Join(c.project.Dir, "Cargo.toml")}
	done := make(chan error, 1)
	go func() {
		err := made.read(reader)
		_, _ = io.Copy(io.Discard, reader) // otherwise Cargo would wait
		done <- err
	}()
	env, flags := c.project.remap(target, c.workspace(ctx))
	args := append([]string{"build", "--release", "--target", target, "--message-format=json-render-diagnostics"}, flags...)
	err = c.run(ctx, env, writer, "cargo", args...)
	writer.Close()
	readErr := <-done
	switch {
	case err != nil && ctx.Err() == nil && !c.installed(ctx, target):
		return "", fmt.Errorf("the Rust target %s is not installed: run rustup target add %[1]s "+
			"(rustup itself is at https://rustup.rs/)", target)
	case err != nil:
		return "", err
	case readErr != nil:
		return "", fmt.Errorf("read the messages of Cargo: %w", readErr)
	}
	switch len(made.files) {
	case 0:
		kind := "add a section [lib] with crate-type = [\"cdylib\"]"
		if c.project.Plain {
			kind = "add a src/main.rs"
		}
		return "", fmt.Errorf("the package of %s produces no .wasm file: %s", made.manifest, kind)
	case 1:
		return made.files[0], nil
	}
	return "", fmt.Errorf("the package of %s produces %d .wasm files, but a project is one module: keep one of %s",
		made.manifest, len(made.files), strings.Join(made.files, ", "))
}

// workspace returns the folder of the Cargo workspace that contains the project, which may be the project's own folder, or "" if Cargo can't tell.
func (c *compiler) workspace(ctx context.Context) string {
	var out bytes.Buffer
	quiet := &compiler{project: c.project, temp: c.temp, stderr: io.Discard}
	if err := quiet.run(ctx, nil, &out, "cargo", "locate-project", "--workspace", "--message-format=plain"); err != nil {
		return "" // the build will say why
	}
	dir, _ := filepath.EvalSymlinks(filepath.Dir(strings.TrimSpace(out.String())))
	return dir
}

// installed reports whether the compiler has the standard library for a target. It is called only after a failed build, since a build that compiles
// the library from source does not need it.
func (c *compiler) installed(ctx context.Context, target string) bool {
	var out bytes.Buffer
	quiet := &compiler{project: c.project, temp: c.temp, stderr: io.Discard}
	if err := quiet.run(ctx, nil, &out, "rustc", "--print", "target-libdir", "--target", target); err != nil {
		return true // unknown, so the target is not blamed
	}
	_, err := os.Stat(strings.TrimSpace(out.String()))
	return !errors.Is(err, fs.ErrNotExist)
}

// artifacts are the .wasm files that Cargo made from the package whose Cargo.toml is manifest.
type artifacts struct {
	manifest string
	files    []string
}

// maxMessage is larger than Cargo's longest message, which lists the files of a crate.
const maxMessage = 4 << 20

// read reads Cargo's messages, one per line. It skips what a compiler plug-in prints between them.
func (a *artifacts) read(messages io.Reader) error {
	want, err := os.Stat(a.manifest)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(messages)
	lines.Buffer(nil, maxMessage)
	for lines.Scan() {
		var message struct {
			Reason       string   `json:"reason"`
			ManifestPath string   `json:"manifest_path"`
			Filenames    []string `json:"filenames"`
		}
		if json.Unmarshal(lines.Bytes(), &message) != nil || message.Reason != "compiler-artifact" {
			continue
		}
		// A link may give the same file another name.
		if got, err := os.Stat(message.ManifestPath); err != nil || !os.SameFile(want, got) {
			continue
		}
		for _, file := range message.Filenames {
			if filepath.Ext(file) == ".wasm" {
				a.files = append(a.files, file)
			}
		}
	}
	return lines.Err()
}
