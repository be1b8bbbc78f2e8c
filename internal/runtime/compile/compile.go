// Package compile compiles modules with wazero, in this process or in others.
//
// wazero's compiler can't be interrupted, and what it needs for a hostile module can only be guessed. A [Pool] compiles in processes of its own, one
// module at a time, within limits on memory and processor time that the system and the pool enforce. If a module breaks a limit, that process ends,
// and the server goes on.
package compile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// A File is the compiled code of a module, as wazero stores it in a directory.
type File struct {
	Name string
	Code []byte
}

// ErrDisk is returned if the directory can't be used, and ErrNoMemory if the system refuses memory. Neither is the module's fault.
var (
	ErrDisk     = errors.New("the disk for compiled code")
	ErrNoMemory = errors.New("the system has no memory for code")
)

// Here compiles a module in this process. If there are several workers, nobody can recover from a panic. While it runs, it uses a directory of its
// own below scratch.
func Here(scratch string, module []byte, workers int) (f File, err error) {
	dir, err := os.MkdirTemp(scratch, "compile-")
	if err != nil {
		return File{}, fmt.Errorf("%w: %w", ErrDisk, err)
	}
	defer func() {
		if gone := os.RemoveAll(dir); gone != nil && err == nil {
			f, err = File{}, fmt.Errorf("%w: %w", ErrDisk, gone)
		}
	}()
	b, err := openBench(dir)
	if err != nil {
		return File{}, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	name, err := b.make(module, workers)
	if err != nil {
		return File{}, err
	}
	if f.Code, err = os.ReadFile(filepath.Join(b.files, name)); err != nil {
		return File{}, fmt.Errorf("%w: %w", ErrDisk, err)
	}
	f.Name = name
	return f, nil
}

// A bench is a directory in which wazero leaves its files, and the memory that it keeps between modules.
type bench struct {
	cache wazero.CompilationCache
	files string // the directory of wazero's files; if it is "", there is none, and the code is dropped
}

// openBench opens an empty directory. With "", code is not kept.
func openBench(dir string) (*bench, error) {
	if dir == "" {
		return &bench{cache: wazero.NewCompilationCache()}, nil
	}
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDisk, err)
	}
	inside, err := os.ReadDir(dir)
	if err == nil && len(inside) != 1 {
		err = fmt.Errorf("wazero stores its code in %d directories, not in one", len(inside))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDisk, errors.Join(err, cache.Close(context.Background())))
	}
	return &bench{cache, filepath.Join(dir, inside[0].Name())}, nil
}

func (b *bench) close() error { return b.cache.Close(context.Background()) }

// make compiles a module, and returns the name of the only file that is then in b.files. It first removes what an earlier call has left.
func (b *bench) make(module []byte, workers int) (name string, err error) {
	if b.files != "" {
		left, err := os.ReadDir(b.files)
		for _, f := range left {
			err = errors.Join(err, os.Remove(filepath.Join(b.files, f.Name())))
		}
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrDisk, err)
		}
	}
	if err := b.compile(module, workers); err != nil {
		if path := (*fs.PathError)(nil); errors.As(err, &path) { // wazero could not write its file
			err = fmt.Errorf("%w: %w", ErrDisk, err)
		}
		return "", err
	}
	if b.files == "" {
		return "", nil
	}
	inside, err := os.ReadDir(b.files)
	if err == nil && len(inside) != 1 {
		err = fmt.Errorf("wazero stores the code of a module in %d files, not in one", len(inside))
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrDisk, err)
	}
	return inside[0].Name(), nil
}

// compile makes wazero compile a module in a runtime like those that run it.
func (b *bench) compile(module []byte, workers int) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = Panicked(p)
		}
	}()
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2).WithDebugInfoEnabled(false).WithCompilationCache(b.cache))
	defer func() { err = errors.Join(err, r.Close(ctx)) }()
	compiled, err := r.CompileModule(experimental.WithCompilationWorkers(ctx, workers), module)
	if err != nil {
		return err
	}
	return compiled.Close(ctx)
}

// Panicked makes an error of a panic in wazero's compiler.
func Panicked(p any) error {
	var number syscall.Errno // the reason why wazero could not make a mapping
	if err, ok := p.(error); ok && errors.As(err, &number) {
		return fmt.Errorf("%w: %w", ErrNoMemory, err)
	}
	return fmt.Errorf("the compiler panicked: %v\n%s", p, debug.Stack())
}
