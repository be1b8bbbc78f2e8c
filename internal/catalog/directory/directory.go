// Package directory has the sources of a catalog that are on disk: a directory, or single files.
//
// # What counts
//
// Every regular file named *.wasm in the directory or a folder below it (at most 16 deep) is a module. Names that begin with
// "." or end in "~" or ".tmp" are skipped, and so is all in folders of such names. At most Options.Modules are listed. If there
// are more, that is reported.
//
// A file that is written in place counts once nothing has been written to it for 400 ms. A file that is written under a skipped name and then renamed
// counts at once.
//
// Symbolic links are followed to files and folders within the directory (Kubernetes mounts a ConfigMap as links into a
// hidden folder), never out of it, no matter who made them; absolute links count as leading out. A link to a folder that holds the
// link, or below another linked folder, is reported and not followed, so that no loop multiplies tools.
//
// # Scripts
//
// With Options.Scripts, scripts count, too. Some are not served by themselves: those that Options.Scripts calls parts, and those in folders whose
// names begin with "_" or that hold an __init__.py. Folders named node_modules or __pycache__, and Python's virtual environments, are not looked at,
// whatever they hold.
//
// # When the directory itself goes away
//
// A directory or folder that can't be read is reported as a problem, and what was served stays. The same holds if an empty directory has replaced the
// previous one, as when a volume is unmounted. The files of a folder that is removed are gone.
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

// DefaultModules is how many modules of a directory are listed if Options.Modules is 0.
const DefaultModules = 10_000

// Options say how a Directory is scanned. The zero value is ready to use.
type Options struct {
	// Modules is how many modules are listed at most; 0 means DefaultModules.
	Modules int
	// Logger gets a line if other users can change what is served, or if the system can't report changes. Nil discards.
	Logger *slog.Logger
	// Poll is the time between two scans of the directory if the system can't report changes; 0 means 500 ms. If it can, there is still a scan after
	// ten times as long, for safety.
	Poll time.Duration
	// MayBeAway lets Open succeed for a directory that can't be listed yet. List returns the error then.
	MayBeAway bool
	// PollOnly turns the system's file notification off. It is for file systems (NFS, SMB) where notification gives no error but does not report the
	// changes of other machines.
	PollOnly bool
	// Scripts tells which files are scripts, so that these are listed, too. Nil lists none.
	Scripts Names
	// IsScript is used if Scripts is nil. It reports whether a file would be a script, by the last element of its path. Such files are named in the
	// log, so that nobody waits for them in vain. Nil means that no file is a script.
	IsScript func(name string) bool
}

// A Directory is a source with the files of a directory and its folders. Close it after the Catalog that uses it.
type Directory struct {
	path     string
	modules  int
	isScript func(name string) bool
	logger   *slog.Logger

	// Only List uses these.
	root      fs.FileInfo // the directory at the last successful List; nil before the first
	seen      *scanned    // what the last List saw; nil if it failed
	whole     time.Time   // when the last full look was
	unsettled changes     // files that somebody may still have been writing at the last List
	unserved  []string    // scripts that are not served, at the last List
	number    uint64      // the number of the last successful listing
	looked    int         // how many entries of folders have been looked at so far
	watch     watch

	versions versions
}

var (
	_ catalog.Disk     = (*Directory)(nil)
	_ catalog.Trusting = (*Directory)(nil)
)

// Open opens the directory at a path on disk. It fails if the directory can't be listed, unless Options.MayBeAway is set.
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

// Changes sends a value when the system reports a change.
func (d *Directory) Changes() <-chan struct{} { return d.watch.changes }

// Doubt makes the next List look at everything, whatever the system has reported.
func (d *Directory) Doubt() { d.watch.doubt() }

// List looks at the files that have changed according to the system, and every few seconds at all files. It opens only folders.
func (d *Directory) List(ctx context.Context) (listing *catalog.Listing, err error) {
	now := time.Now()
	defer func() {
		if err != nil || ctx.Err() != nil { // the caller may never see this listing
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

// warnOfUnserved warns of scripts that nobody serves, if they are not the same as at the last listing.
func (d *Directory) warnOfUnserved(scripts []string) {
	if len(scripts) > 0 && !slices.Equal(scripts, d.unserved) {
		d.logger.Warn("scripts in the tools directory are not served: set tools.scripts = true to serve them, or scripts in its [[source]]",
			"directory", d.path, "scripts", len(scripts), "first", scripts[0])
	}
	d.unserved = scripts
}

// Unserved returns the scripts that the last List passed over because Options.Scripts was nil, as sorted paths in the directory. It
// must not be called while List runs. The caller must not change what it returns.
func (d *Directory) Unserved() []string { return d.unserved }

// Open opens a file for reading. The file is opened once and checked through that handle: before and after it is read, it must be the regular file
// that was listed.
func (d *Directory) Open(_ context.Context, name, version string) (io.ReadCloser, error) {
	info := d.versions.infoOf(name, version)
	if info == nil {
		return nil, catalog.ErrChanged
	}
	return open(d.path, name, info)
}

// Path returns the paths of a file and of the directory on disk.
func (d *Directory) Path(name string) (root, path string) { return d.path, d.Place(name) }

// Close stops watching. A second Close does nothing.
func (d *Directory) Close() error {
	d.watch.close()
	return nil
}
