package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/toolfile"
)

// A Source is where a Catalog takes its files from. Its files are not trusted: the Catalog checks the size of each file and bounds the time to read
// it, so that a bad file affects only itself.
type Source interface {
	// ID names the source. It is the same after a restart.
	ID() string
	// Place returns where a file or folder lies, for messages: a path on disk, or an address. "." is the source itself.
	Place(name string) string
	// List returns what exists now. After an error the Catalog keeps what it has, and tries again. Calls of List come one
	// at a time. It must return when ctx ends.
	List(ctx context.Context) (*Listing, error)
	// Open returns the content of a file at the version that was listed, or ErrChanged if that version no longer exists.
	// After a *FileError the Catalog waits for another version. After any other error it tries again, after a *PassingError less and less
	// often. Open is called from many goroutines and must return when ctx ends;
	// closing what it returns must end a Read of it.
	Open(ctx context.Context, name, version string) (io.ReadCloser, error)
	// Changes returns a channel that sends a value when there may be something new to list, the same channel at every call.
	// A source that can't report changes returns nil, and sets [Listing.Again]. Values that come faster than the Catalog lists count as one.
	Changes() <-chan struct{}
}

// A Disk is a Source whose files are on disk. Its scripts can import the files beside them. For a script of any other source, the Catalog first
// writes the script and the source's [Part] files into a folder.
type Disk interface {
	Source
	// Path returns the path of a listed file, and the folder that must hold everything that belongs to it. Without such a folder it is
	// empty.
	Path(name string) (root, path string)
}

// A Trusting Source lists only what was reported as changed, so it finds an unreported change later. Doubt makes the next List look at everything.
type Trusting interface {
	Source
	Doubt()
}

// ErrChanged means that a file no longer has the version that was listed. [Source.Open] fails with ErrChanged, or a Read of what Open returned does.
// The Catalog lists again.
var ErrChanged = errors.New("the file changed while it was read")

// A FileError is returned by [Source.Open] if the file is to blame: the same version would fail again. Its text is that
// of Err.
type FileError struct{ Err error }

// Error returns the text of Err.
func (e *FileError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *FileError) Unwrap() error { return e.Err }

// A PassingError means that the system lacks something at the moment, such as memory. [Source.Open] returns it if neither the file nor the
// source is at fault. The Catalog tries again at ever longer intervals. Its text is Err's.
type PassingError struct{ Err error }

// Error returns the text of Err.
func (e *PassingError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *PassingError) Unwrap() error { return e.Err }

// A Listing is what a Source holds.
type Listing struct {
	// Entries are all files, each ID once.
	Entries []Entry
	// Problems are the problems of folders, or of the source as a whole. What is served from files below these folders stays.
	Problems []Problem
	// Partial means that not all files are listed. What is served from the others stays.
	Partial bool
	// Around changes with each change to unlisted files that scripts may be made of. Broken scripts are made again then.
	Around string
	// Changed has the base names of the unlisted files and scripts that have come, gone or changed since the last listing, as far as was reported. If
	// nil, any of them may have.
	Changed map[string]bool
	// Number identifies the listing among those of the source. If Since is the Number of an earlier one, then only the files in Only, by ID, have
	// come, gone or changed since. Both may be 0: then any file may have.
	Number, Since uint64
	Only          map[string]bool
	// Again is the time after which to list again even if no change is reported; 0 means that Changes reports all changes.
	Again time.Duration
}

// An Entry is one file of a Source.
type Entry struct {
	// ID identifies the file in the source. For a Script or Part that is not on disk, it is the path for imports, with slashes and the file extension
	// of the language. It has no other meaning.
	ID string
	// Folder is the namespace of the file's tools unless its manifest has one, with slashes. For a file on disk it is the file's folder, and empty at
	// the top.
	Folder string
	// Kind is what the file is; empty means a Module.
	Kind Kind
	// Version is not empty, and is different for each content of the file. It has no other meaning.
	Version string
	// Size is the size of the content in bytes.
	Size int64
	// Settling is how much longer the file must stay unchanged, since somebody may be writing it. While it is not 0, the Catalog doesn't open the
	// file, and lists again after that time.
	Settling time.Duration
	// Err is why the file is not served, regardless of its content, or nil.
	Err error
}

// A Kind is what a file of a Source is.
type Kind string

// The kinds.
const (
	Module Kind = "module"
	// Script is a file of which the Catalog makes a module, with what it imports.
	Script Kind = "script"
	// Part is a file that is not served by itself, but that scripts may import.
	Part Kind = "part"
)

// A Problem is a folder of a Source that can't be listed, or only in part.
type Problem struct {
	Name string
	Err  error
}

// Knows reports whether a file would be among the entries if it existed.
func (l *Listing) Knows(file string) bool {
	return !l.Partial && !slices.ContainsFunc(l.Problems, func(p Problem) bool {
		return p.Name == "." || strings.HasPrefix(file, p.Name+"/")
	})
}

// has reports whether a file is listed, in entries that are sorted.
func (l *Listing) has(name string) bool {
	_, ok := slices.BinarySearchFunc(l.Entries, name, func(e Entry, name string) int { return strings.Compare(e.ID, name) })
	return ok
}

// list lists a source once, without a Catalog, and sorts the entries by name. Files need not settle.
func (f *feed) list(ctx context.Context, settle time.Duration) (*Listing, error) {
	l, err := f.patience.list(ctx, f.Source)
	if err != nil {
		return nil, err
	}
	byName := func(a, b Entry) int { return strings.Compare(a.ID, b.ID) }
	if !slices.IsSortedFunc(l.Entries, byName) {
		l.Entries = slices.SortedStableFunc(slices.Values(l.Entries), byName)
	}
	all := len(l.Entries)
	twice := ""
	l.Entries = slices.CompactFunc(l.Entries, func(a, b Entry) bool {
		if a.ID == b.ID {
			twice = a.ID
		}
		return a.ID == b.ID
	})
	if more := all - len(l.Entries); more > 0 {
		err := fmt.Errorf("is listed more than once by its source (%d surplus entries): only the first counts", more)
		l.Problems = append(slices.Clip(l.Problems), Problem{twice, err})
	}
	bound(l, f.most())
	f.scripts.take(l, settle, time.Now())
	return l, nil
}

// errUnreadable means that reading failed: another try may succeed without any change to the file.
var errUnreadable = errors.New("can't be read")

const (
	// madeSize is the assumed size in bytes of a script's bundle, before one is known.
	madeSize = 1 << 20
	// madeCost is the cost of making a module of a script, compared to the size of a module: another process reads the script first.
	madeCost = 8 << 20
)

// cost returns the size in bytes that decides the order of work.
func (e *Entry) cost() int64 {
	if e.Kind == Script {
		return madeCost + min(e.Size, sandbox.MaxModule)
	}
	return e.Size
}

// load loads a file of a source, and returns the module and the digest of its content.
func (f *feed) load(ctx context.Context, e Entry, engine *sandbox.Engine, place toolfile.Place) (m *toolfile.Module, content string, err error) {
	place.Folder, place.Source, place.Prefix = e.Folder, f.place(e.ID), f.Prefix
	if e.Kind == Script {
		made, content, err := f.scripts.make(ctx, e)
		if err != nil {
			return nil, "", err
		}
		m, err := toolfile.LoadMade(engine, made, place)
		return m, content, err
	}
	m, err = f.loadModule(ctx, e, engine, place)
	if err != nil {
		return nil, "", err
	}
	return m, m.Digest(), nil
}

// loadModule loads a file of kind Module.
func (f *feed) loadModule(ctx context.Context, e Entry, engine *sandbox.Engine, place toolfile.Place) (*toolfile.Module, error) {
	read, err := f.patience.read(ctx, f.Source, e, f.buffers)
	if err != nil {
		return nil, err
	}
	content := read
	if f.rollbacks != nil {
		if content, err = f.rollbacks.Instead(ctx, f.id, e.ID, read); err != nil {
			return nil, err
		}
	}
	m, err := toolfile.Load(engine, content, place)
	if err == nil { // not after an error, which may quote the content
		f.buffers.giveBack(read)
	}
	return m, err
}

// checkSize returns an error if a file is larger than a module may be.
func (e *Entry) checkSize() error {
	if e.Size < 0 || e.Size > sandbox.MaxModule {
		return fmt.Errorf("has %d bytes; the limit for a module is %d: strip it of debug information (wasm-opt, wasm-strip)", e.Size, sandbox.MaxModule)
	}
	return nil
}

// read returns the content of a file. It fails with ErrChanged, errUnreadable, a *FileError, a *PassingError, or an error about the file's size.
func read(ctx context.Context, s Source, e Entry, into *buffers) ([]byte, error) {
	if err := e.checkSize(); err != nil {
		return nil, err
	}
	f, err := s.Open(ctx, e.ID, e.Version)
	if err != nil {
		return nil, unreadable(ctx, err)
	}
	defer f.Close()
	// A source that hangs is not waited for.
	defer context.AfterFunc(ctx, func() { f.Close() })()
	content := into.borrow(int(e.Size))
	n, err := io.ReadFull(f, content)
	switch {
	case errors.Is(err, io.EOF) && e.Size > 0, errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("has %d bytes, but its source listed %d: the source is at fault", n, e.Size)
	case err != nil && !errors.Is(err, io.EOF):
		return nil, unreadable(ctx, err)
	}
	switch n, err := io.ReadFull(f, make([]byte, 1)); {
	case n > 0:
		return nil, fmt.Errorf("has more than the %d bytes that its source listed: the source is at fault", e.Size)
	case err != nil && !errors.Is(err, io.EOF):
		return nil, unreadable(ctx, err)
	}
	return content, nil
}

// unreadable returns the error of read for an error of the source.
func unreadable(ctx context.Context, err error) error {
	if errors.Is(err, ErrChanged) {
		return ErrChanged
	}
	if failed, ok := errors.AsType[*FileError](err); ok {
		return failed
	}
	if passing, ok := errors.AsType[*PassingError](err); ok {
		return passing
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx) // rather than the error of reading a closed file
	}
	return fmt.Errorf("%w: %w", errUnreadable, err)
}
