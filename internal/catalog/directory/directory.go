// Package directory has the sources of a catalog that take their files from disk: a directory, or single files.
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
// hidden folder), never out of it, no matter who made them; absolute links count as leading out. A link to a folder that holds the
// link, or below another linked folder, is reported and not followed, so that no loop multiplies tools.
//
// # Scripts
//
// With Options.Scripts, scripts count, too. Not served by themselves are those that it calls parts, and those in folders whose names begin
// with "_" or that hold an __init__.py.
// Folders named node_modules or __pycache__, and Python's virtual environments, are not looked at, whatever they hold.
//
// # When the directory itself goes away
//
// A directory or folder that can't be read is reported as a problem, and so is an empty directory replacing the previous one (an
// unmounted volume): what was served stays. The files of a folder that is removed are gone.
package directory

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog"
)

// DefaultModules is how many modules of a directory are listed where Options.Modules says nothing else.
const DefaultModules = 10_000

// Options say how a Directory is scanned. The zero value is ready to use.
type Options struct {
	// Modules is how many modules are listed at most; 0 means DefaultModules.
	Modules int
	// Logger gets a line where others can change what is served, and where the system can't tell of changes. Nil discards.
	Logger *slog.Logger
	// Poll is the time between two looks at the directory where the system can't tell of changes; 0 means 500 ms.
	// Where it can, there is a look every 10 Poll for safety.
	Poll time.Duration
	// MayBeAway is whether a directory that can't be listed yet is not an error of Open: List tells.
	MayBeAway bool
	// PollOnly does without the system's file notification, for file systems where that works without an error but
	// tells nothing of other machines' changes (NFS, SMB).
	PollOnly bool
	// Scripts tells which files are scripts, so that these are listed, too. Nil lists none.
	Scripts Names
	// IsScript reports whether a file would be a script, by the last element of its path, where Scripts is nil: those are named in
	// the log, so that nobody waits for them for nothing. Nil means that none are.
	IsScript func(name string) bool
}

// A Directory is a directory with its folders. Close it after the Catalog that it is the source of.
type Directory struct {
	path     string
	modules  int
	isScript func(name string) bool
	logger   *slog.Logger

	// Only List uses these.
	root      fs.FileInfo // the directory at the last List; if nil, none went well yet
	seen      *scanned    // at the last List; if nil, it has failed
	whole     time.Time   // when everything was looked at last
	unsettled changes     // files that somebody may still have been writing at the last List
	unserved  []string    // scripts that are not served, at the last List
	number    uint64      // of the last List that went well
	looked    int         // entries of folders so far
	watch     watch

	versions versions
}

var (
	_ catalog.Disk     = (*Directory)(nil)
	_ catalog.Trusting = (*Directory)(nil)
)

// Open opens the directory at a path on disk. It fails if that can't be listed, unless it may be away.
func Open(path string, o Options) (*Directory, error) {
	if path == "" {
		return nil, errors.New("the directory has no name: name the folder that holds the .wasm files")
	}
	if err := readable(path); err != nil && !o.MayBeAway {
		return nil, err
	}
	d := &Directory{
		path:     path,
		modules:  cmp.Or(o.Modules, DefaultModules),
		isScript: o.IsScript,
		logger:   o.Logger,
		versions: newVersions(o),
	}
	if d.logger == nil {
		d.logger = slog.New(slog.DiscardHandler)
	}
	d.watch = newWatch(o, d.logger)
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

// Changes sends a value when the system announces a change.
func (d *Directory) Changes() <-chan struct{} { return d.watch.changes }

// Doubt has the next List look at everything, whatever the system has announced.
func (d *Directory) Doubt() { d.watch.doubt() }

// List looks at the files of which the system has announced changes, and every few seconds at all of them. It opens no file but folders.
func (d *Directory) List(ctx context.Context) (listing *catalog.Listing, err error) {
	now := time.Now()
	defer func() {
		if err != nil || ctx.Err() != nil { // the caller may know nothing of it
			d.seen = nil
		}
	}()
	var seen *scanned
	if changed, ok := d.watch.take(); ok {
		seen = d.again(changed, now)
	}
	again := seen != nil
	if !again {
		if seen, err = scan(d.path, d.modules, d.versions.scripts, d.isScript); err != nil {
			return nil, err
		}
		d.looked += seen.looked
	}
	if d.root != nil && len(seen.files) == 0 && len(d.versions.files) > 0 && !os.SameFile(seen.folders["."], d.root) {
		return nil, errors.New("an empty folder has taken the place of the directory, as when a volume is unmounted: put its modules back, or restart to serve none")
	}
	first := d.root == nil
	d.root, d.seen = seen.folders["."], seen
	listing = &catalog.Listing{Problems: seen.problems, Partial: seen.partial}
	changed, names := d.versions.around(seen.parts)
	if again {
		listing.Again = d.whole.Add(d.watch.intervals.safety).Sub(now)
		listing.Changed = names
	} else {
		d.whole = now
		listing.Again = d.watch.follow(d.path, seen.folders, seen.links, now)
	}
	if seen.only != nil {
		listing.Since, listing.Only = d.number, seen.only
	}
	d.number++
	listing.Number = d.number
	settled := append(d.versions.compare(seen.files, seen.only, listing, first, now), changed...)
	d.unsettled = changes{}
	for _, e := range listing.Entries {
		if e.Settling > 0 {
			d.unsettled.add(path.Dir(e.ID), path.Base(e.ID))
		}
	}
	if first {
		d.warnOfDirectory()
	}
	d.warnOfFiles(settled, seen.folders)
	d.warnOfUnserved(seen.unserved)
	return listing, nil
}

// warnOfUnserved warns of scripts that nobody serves, if there are others than at the last time.
func (d *Directory) warnOfUnserved(scripts []string) {
	if len(scripts) > 0 && !slices.Equal(scripts, d.unserved) {
		d.logger.Warn("scripts in the tools directory are not served: set tools.scripts = true to serve them, or scripts in its [[source]]",
			"directory", d.path, "scripts", len(scripts), "first", scripts[0])
	}
	d.unserved = scripts
}

// Unserved returns the scripts that the last List passed over since Options.Scripts was nil, as paths in the directory, sorted. It
// must not be called while List runs. The caller must not change what it returns.
func (d *Directory) Unserved() []string { return d.unserved }

// Open opens a file for reading. What is at its path now is opened once and checked through that handle: it must be the regular
// file that was listed, before and after it is read.
func (d *Directory) Open(_ context.Context, name, version string) (io.ReadCloser, error) {
	info := d.versions.infoOf(name, version)
	if info == nil {
		return nil, catalog.ErrChanged
	}
	return open(d.path, name, info)
}

// Path returns the paths of a file and of the directory on disk.
func (d *Directory) Path(name string) (root, path string) { return d.path, d.Place(name) }

// Close ends the watching. A second Close does nothing.
func (d *Directory) Close() error {
	d.watch.close()
	return nil
}
