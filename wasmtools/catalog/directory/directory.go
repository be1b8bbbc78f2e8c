// Package directory is the source of a catalog that takes its files from a directory on disk.
//
// # What counts
//
// Every regular file named *.wasm in the directory or a folder below it (at most 16 deep) is a module. Names that begin with
// "." or end in "~" or ".tmp" are skipped, and so is all in folders of such names. At most Options.Modules are listed. If there
// are more, that is reported.
//
// A file that is written in place counts once nothing was written to it for 400 ms. A file that is written under a name that is
// skipped, and then renamed, counts at once.
//
// Symbolic links are followed to files and folders within the directory (Kubernetes mounts a ConfigMap as links into a
// hidden folder), never out of it, whoever made them; absolute links count as leading out. A link to a folder that holds the
// link, or below another linked folder, is reported and not followed, so that no loop multiplies tools.
//
// # When the directory itself goes away
//
// A directory or folder that can't be read, and a directory in whose place there is an empty one (an unmounted volume), is
// reported as a problem: what was served stays. The files of a folder that is removed are gone.
package directory

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/wasmtools/catalog"
)

// DefaultModules is how many modules of a directory are listed where Options.Modules says nothing else.
const DefaultModules = 10_000

// Options say how a Directory is looked at. The zero value is ready to use.
type Options struct {
	// Modules is how many modules are listed at most; 0 means DefaultModules.
	Modules int
	// Logger gets a line where others can change what is served, and where the system can't tell of changes. Nil discards.
	Logger *slog.Logger
	// Poll is the time between two looks at the directory where the system can't tell of changes; 0 means 500 ms.
	// Where it can, there is a look every 10 Poll for safety.
	Poll time.Duration
	// PollOnly does without the system's file notification, for file systems where that works without an error but
	// tells nothing of other machines' changes (NFS, SMB).
	PollOnly bool
}

// A Directory is a directory with its folders. Close it after the Catalog that it is the source of.
type Directory struct {
	path      string
	modules   int
	logger    *slog.Logger
	intervals intervals
	pollOnly  bool

	// Only List uses these.
	root      fs.FileInfo // the directory at the last List; nil: none went well yet
	watch     watch
	unwatched string // why not all folders are watched, as it was logged last

	mu       sync.Mutex // guards files, which Open reads
	files    map[string]*file
	versions int // how many were given
}

var _ catalog.Source = (*Directory)(nil)

// A file is what is known of a module since it was seen first.
type file struct {
	info    fs.FileInfo // as the last scan saw it; nil: it can't be a module
	since   time.Time   // when a scan first saw it like that
	settled bool        // it has stayed like that for long enough
	version string
	seen    bool // by the last scan
}

// Open opens the directory at a path on disk. It fails if that can't be listed.
func Open(path string, o Options) (*Directory, error) {
	if path == "" {
		return nil, errors.New("the directory has no name: name the folder that holds the .wasm files")
	}
	if err := readable(path); err != nil {
		return nil, err
	}
	d := &Directory{
		path:      path,
		modules:   cmp.Or(o.Modules, DefaultModules),
		logger:    o.Logger,
		intervals: newIntervals(o.Poll),
		pollOnly:  o.PollOnly,
		watch:     watch{changes: make(chan struct{}, 1)},
		files:     map[string]*file{},
	}
	if d.logger == nil {
		d.logger = slog.New(slog.DiscardHandler)
	}
	d.watch.logger = d.logger
	return d, nil
}

// ID returns the directory's absolute path.
func (d *Directory) ID() string {
	if absolute, err := filepath.Abs(d.path); err == nil {
		return absolute
	}
	return d.path
}

// Place returns the path of a file or folder on disk, which begins with the path given to Open.
func (d *Directory) Place(name string) string { return filepath.Join(d.path, filepath.FromSlash(name)) }

// Changes sends a value when the system tells of a change.
func (d *Directory) Changes() <-chan struct{} { return d.watch.changes }

// List looks at the whole directory. It opens no file but folders.
func (d *Directory) List(context.Context) (*catalog.Listing, error) {
	now := time.Now()
	seen, err := scan(d.path, d.modules)
	if err != nil {
		return nil, err
	}
	if d.root != nil && len(seen.files) == 0 && len(d.files) > 0 && !os.SameFile(seen.folders["."], d.root) {
		return nil, errors.New("an empty folder has taken the place of the directory, as when a volume is unmounted: put its modules back, or restart if none are to be served")
	}
	first := d.root == nil
	d.root = seen.folders["."]
	listing := &catalog.Listing{Problems: seen.problems, Partial: seen.partial, Again: d.follow(seen, now)}
	settled := d.compare(seen, listing, first, now)
	if first {
		d.warnOfDirectory()
	}
	d.warnOfFiles(settled, seen.folders)
	return listing, nil
}

// compare compares what a scan saw with what is known, and fills in the entries of the listing. It returns the files that have
// settled since the last time.
func (d *Directory) compare(seen *scanned, listing *catalog.Listing, first bool, now time.Time) (settled []found) {
	d.mu.Lock()
	defer d.mu.Unlock()
	entries := make([]catalog.Entry, len(seen.files))
	for i, s := range seen.files {
		f := d.files[s.path]
		if f == nil {
			f = &file{}
			d.files[s.path] = f
		}
		if !same(f.info, s.info) {
			d.versions++
			*f = file{info: s.info, since: now, version: strconv.Itoa(d.versions)}
		}
		f.seen = true
		e := catalog.Entry{Name: s.path, Version: f.version, Err: s.err}
		if s.err == nil {
			e.Size = s.info.Size()
		}
		if s.err == nil && !f.settled {
			if !first { // what was there before the start is settled
				e.Settling = max(0, d.intervals.unsettled(s.info, f.since, now))
			}
			if f.settled = e.Settling == 0; f.settled {
				settled = append(settled, s)
			}
		}
		entries[i] = e
	}
	for name, f := range d.files {
		if !f.seen && listing.Knows(name) {
			delete(d.files, name)
		}
		f.seen = false
	}
	listing.Entries = entries
	return settled
}

// follow has the folders watched, and returns the time after which to list again even if no change is told.
func (d *Directory) follow(seen *scanned, now time.Time) time.Duration {
	if d.pollOnly {
		return d.intervals.poll
	}
	again := d.intervals.safety
	if d.watch.follow(d.path, seen.folders, now, d.intervals.safety) {
		again = d.intervals.debounce // for what came between the scan and the watch
		if err := d.watch.err; err != nil && err.Error() != d.unwatched {
			d.unwatched = err.Error()
			d.logger.Warn("not all folders can be watched: looking at them again and again instead", "every", d.intervals.poll.String(), "error", err)
		}
	}
	if d.watch.err != nil || seen.links {
		again = min(again, d.intervals.poll)
	}
	return again
}

// Open opens a file for reading. What is at its path now is opened once and checked through that handle: it must be the regular
// file that was listed, before and after it is read.
func (d *Directory) Open(_ context.Context, name, version string) (io.ReadCloser, error) {
	info := d.infoOf(name, version)
	if info == nil {
		return nil, catalog.ErrChanged
	}
	return open(d.path, name, info)
}

// infoOf returns what the last scan saw of a file, or nil if it has another version.
func (d *Directory) infoOf(name, version string) fs.FileInfo {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.files[name]; f != nil && f.version == version {
		return f.info
	}
	return nil
}

// Close ends the watching. A second Close does nothing.
func (d *Directory) Close() error {
	d.watch.close()
	return nil
}
