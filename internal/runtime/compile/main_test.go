package compile_test

import (
	"crypto/sha256"
	"encoding/gob"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/compile"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/wasmtest"
)

// TestMain runs this program as a process that compiles, or as one that misbehaves, if its first argument says so.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != "serve" {
		testkit.Main(m, "internal/runtime/compile.")
		return
	}
	how, args := os.Args[2], os.Args[3:]
	err := func() error {
		if first, ok := strings.CutPrefix(how, "at first "); ok { // the first process that is started
			mark, err := os.OpenFile(args[0], os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return compile.Serve(args[1:], os.Stdin, os.Stdout)
			}
			mark.Close()
			how, args = first, args[1:]
		}
		if how == "counted" {
			starts, err := os.OpenFile(args[0], os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
			if err != nil {
				return err
			}
			if _, err := starts.WriteString("."); err != nil {
				return err
			}
			starts.Close()
			how, args = "well", args[1:]
		}
		if how == "well" {
			return compile.Serve(args, os.Stdin, os.Stdout)
		}
		return badly(how)
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// An answer is sent before each reply, and once at the beginning without a reply. A reply has those fields of the real reply that a misbehaving
// process needs.
type (
	answer struct{ Number uint64 }
	reply  struct {
		Name  string
		Size  int64
		Sum   [sha256.Size]byte
		Kind  int
		Wrong string
	}
)

// badly serves one module, but misbehaves in the given way.
func badly(how string) error {
	out := gob.NewEncoder(os.Stdout)
	switch how {
	case "says nothing":
		return nil
	case "says no":
		return fmt.Errorf("no such luck")
	case "writes else":
		_, err := fmt.Println("hello world, how do you do?")
		return err
	case "greets wrongly":
		return out.Encode(&answer{Number: 7})
	}
	if err := out.Encode(&answer{}); err != nil {
		return err
	}
	var r struct {
		Number uint64
		Limit  struct{ Bytes int64 }
	}
	if err := gob.NewDecoder(os.Stdin).Decode(&r); err != nil {
		return err
	}
	if how == "hangs with large ones" && r.Limit.Bytes <= compile.SmallBytes {
		how = "refuses"
	}
	code := []byte("machine code")
	if err := os.WriteFile("code", code, 0o600); err != nil {
		return err
	}
	number, a := r.Number, reply{Name: "code", Size: int64(len(code)), Sum: sha256.Sum256(code)}
	switch how {
	case "dies":
		os.Exit(3)
	case "lacks memory":
		fmt.Fprintln(os.Stderr, "fatal error: runtime: out of memory")
		os.Exit(2)
	case "is killed":
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		return err
	case "hangs", "hangs with large ones":
		time.Sleep(time.Hour)
	case "refuses":
		a.Kind, a.Wrong = 1, "refused"
	case "answers another":
		number++
	case "writes half":
		a.Size++
	case "lies about the size":
		a.Size = 1 << 50
	case "lies about the digest":
		a.Sum[0]++
	case "writes nothing":
		a.Name = "missing"
	case "points out":
		a.Name = "../../outside"
	case "leaves a link":
		if err := os.Symlink("code", "link"); err != nil {
			return err
		}
		a.Name = "link"
	case "says much":
		a.Name = string(make([]byte, 1<<20))
	}
	err := out.Encode(&answer{number})
	if err == nil {
		err = out.Encode(&a)
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin) // waits until the process is ended
	return err
}

// pool returns a pool of processes that run this program. It is closed at the end of the test.
func pool(t testing.TB, memory int64, command ...string) *compile.Pool {
	t.Helper()
	testkit.SkipEmulated(t, "the test can't start the process that compiles")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := compile.NewPool(compile.Config{Command: append([]string{self, "serve"}, command...), Each: memory, Small: 4 * compile.SmallBytes})
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(p.Close)
	return p
}

// plenty is as many bytes of memory as any harmless module needs, and much is as much time.
const plenty = 512 << 20

var much = compile.Limit{CPU: time.Minute}

// module returns a small module, a different one for each n.
func module(n int) []byte {
	return function([]byte{0x41, byte(n & 0x3f), 0x41, byte(n >> 6 & 0x3f), 0x6a, 0x0b})
}

// function returns a module of one function (i32) -> (i32).
func function(code []byte) []byte { return functions(1, code) }

// large is a module of 1 MiB with so many functions that compiling it keeps two processors busy.
func large() []byte {
	code := slices.Concat(slices.Repeat([]byte{0x20, 0, 0x41, 3, 0x6c, 0x21, 0}, 1500), []byte{0x20, 0, 0x0b})
	return functions(100, code)
}

// functions returns a module of functions (i32) -> (i32).
func functions(count int, code []byte) []byte {
	body := append([]byte{0}, code...)
	body = append(wasmtest.LEB(len(body)), body...)
	return wasmtest.Module(
		wasmtest.Section(1, wasmtest.Vec([]byte{0x60, 1, 0x7f, 1, 0x7f})),
		wasmtest.Section(3, append(wasmtest.LEB(count), make([]byte, count)...)),
		wasmtest.Section(5, []byte{1, 0, 1}),
		wasmtest.Section(10, append(wasmtest.LEB(count), slices.Repeat(body, count)...)))
}

// bomb is a module of 64 KB that takes wazero's compiler 30 s and 2 GB.
func bomb() []byte {
	load := []byte{0x20, 0, 0x28, 2, 0}
	fill := []byte{0x20, 0, 0x20, 0, 0x41, 8, 0xfc, 0x0b, 0}
	return function(slices.Concat(slices.Repeat(load, 1000), slices.Repeat(fill, 6000), slices.Repeat([]byte{0x73}, 999), []byte{0x0b}))
}

// left returns the names of a directory's entries.
func left(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}
