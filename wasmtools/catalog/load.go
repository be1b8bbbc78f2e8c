package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime/debug"

	"github.com/toolsrv/toolsrv/wasmtools/toolfile"
)

// A module is one version of one file. The keeper's goroutine owns it.
type module struct {
	*toolfile.Module
	compiled bool
}

// folder returns the folder of a file, both relative to the directory, and "" for the directory itself.
func folder(file string) string {
	if f := path.Dir(file); f != "." {
		return f
	}
	return ""
}

// A load is what came of one version of a file.
type load struct {
	info   fs.FileInfo
	served string // the digest it was compared with
	// module is nil where err is set, where the content has the digest served, and where undescribed.
	module *module
	// undescribed tells that the module must be run to be described, and that it was not.
	undescribed bool
	err         error
}

// load reads a file and makes a module of it, safely from any goroutine. served is the digest of the version that is
// served, or empty. The module is compiled, and run to be described where that is needed, only if it is to be ready.
func (k *keeper) load(ctx context.Context, file string, info fs.FileInfo, served string, ready bool) load {
	l := load{info: info, served: served}
	l.err = k.guard(file, func() error {
		content, err := read(k.directory, file, info)
		if err != nil {
			return err
		}
		m, err := toolfile.Load(k.engine, content, toolfile.Place{Folder: folder(file), Source: k.source(file)})
		if err != nil {
			return err
		}
		defer func() {
			if l.module == nil {
				m.Close()
			}
		}()
		if m.Digest() == served {
			return nil
		}
		if m.Manifest() == nil && !ready {
			l.undescribed = true
			return nil
		}
		if ready {
			if err := m.Compile(ctx); err != nil {
				return err
			}
		}
		if err := m.Describe(ctx); err != nil {
			return err
		}
		l.module = &module{Module: m, compiled: ready}
		return nil
	})
	return l
}

// guard calls f and makes an error of its panic. Parsers and compilers read strangers' bytes in it: a bug in one of
// them must cost the file, not the service.
func (k *keeper) guard(file string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			k.logger.Error("loading a file panicked", "file", k.source(file), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = errors.New("toolsrv broke on this file: report that as a bug, with the file; the log has the details")
		}
	}()
	return f()
}

// passing reports whether a load may go better the next time, without any change to the file.
func passing(err error) bool {
	var system *fs.PathError // the compiled code could not be stored, say
	return errors.Is(err, errUnreadable) || errors.As(err, &system)
}
