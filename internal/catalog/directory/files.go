package directory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/ownership"
)

// Files is a source with single files, whatever their names are. Close it after the Catalog that uses it.
//
// A user who names a file means what its path leads to, so symbolic links are followed wherever they lead. The files have no folder, so the namespace
// of a tool is the one in its manifest. The name of a file in the source is the last element of its path, followed by a number if another
// file has that name.
type Files struct {
	logger *slog.Logger
	paths  map[string]string // absolute paths, by name
	names  []string          // the names, in the order in which the paths were given

	// Only List uses these.
	listed bool
	watch  watch

	versions versions
}

var _ catalog.Disk = (*Files)(nil)

// OpenFiles opens the files at these paths. A path that is given twice counts once. OpenFiles fails if one of the files does not exist. A file that
// disappears later is served again when it comes back. Options.Modules is not used.
func OpenFiles(paths []string, o Options) (*Files, error) {
	f := &Files{logger: o.Logger, paths: map[string]string{}, versions: newVersions(o)}
	if f.logger == nil {
		f.logger = slog.New(slog.DiscardHandler)
	}
	f.watch = newWatch(o, f.logger)
	given := map[string]bool{}
	for _, path := range paths {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		switch info, err := os.Stat(absolute); {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("there is no file %s", absolute)
		case err != nil:
			return nil, err
		case info.IsDir():
			return nil, fmt.Errorf("%s is a folder, not a file", absolute)
		}
		if given[absolute] {
			continue
		}
		given[absolute] = true
		name := filepath.Base(absolute)
		for n := 2; f.paths[name] != ""; n++ {
			name = fmt.Sprintf("%s (%d)", filepath.Base(absolute), n)
		}
		f.paths[name] = absolute
		f.names = append(f.names, name)
	}
	return f, nil
}

// ID is empty, because other files may be given at the next start.
func (f *Files) ID() string { return "" }

// Place returns the absolute path of a file.
func (f *Files) Place(name string) string {
	if path, ok := f.paths[name]; ok {
		return path
	}
	return name
}

// Changes sends a value when the system reports a change.
func (f *Files) Changes() <-chan struct{} { return f.watch.changes }

// List looks at each file. It opens none.
func (f *Files) List(context.Context) (*catalog.Listing, error) {
	now := time.Now()
	var seen []found
	folders := map[string]fs.FileInfo{}
	parts := map[string]fs.FileInfo{}
	linked := false
	for _, name := range f.names {
		path := f.paths[name]
		script := f.versions.isScript(path)
		if script {
			siblings(filepath.Dir(path), parts)
		}
		if info, err := os.Stat(filepath.Dir(path)); err == nil {
			folders[filepath.ToSlash(filepath.Dir(path))] = info
		}
		real, err := filepath.EvalSymlinks(path)
		linked = linked || err != nil || real != path
		switch info, err := os.Stat(path); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			seen = append(seen, found{path: name, script: script, err: err})
		case !info.Mode().IsRegular():
			seen = append(seen, found{path: name, script: script, err: errors.New("is not a regular file: put a module here")})
		default:
			seen = append(seen, found{path: name, script: script, info: info})
		}
	}
	listing := &catalog.Listing{Again: f.watch.follow("", folders, linked, now)}
	f.versions.around(parts)
	f.warnOfOwners(f.versions.compare(seen, nil, listing, !f.listed, now))
	f.listed = true
	return listing, nil
}

// siblings adds the files of a script's folder to parts. If there are very many, it adds only the first ones.
func siblings(folder string, parts map[string]fs.FileInfo) {
	opened, err := os.Open(folder)
	if err != nil {
		return
	}
	defer opened.Close()
	const most = 1000
	entries, err := opened.ReadDir(most)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			parts[filepath.Join(folder, e.Name())] = info
		}
	}
}

// warnOfOwners warns if others can change files that are about to be loaded.
func (f *Files) warnOfOwners(settled []found) {
	for _, s := range settled {
		if err := ownership.Check(f.paths[s.path]); err != nil {
			f.logger.Warn("other users can change a file, and so what is served", "file", f.paths[s.path], "reason", err)
		}
	}
}

// Open opens a file for reading, if it is what was listed.
func (f *Files) Open(_ context.Context, name, version string) (io.ReadCloser, error) {
	info := f.versions.infoOf(name, version)
	if info == nil {
		return nil, catalog.ErrChanged
	}
	// Without O_NONBLOCK, opening a FIFO that was put in the file's place just now would block until somebody writes to it.
	file, err := os.OpenFile(f.paths[name], os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return newReader(file, info)
}

// Path returns the path of a file on disk, and no folder: what belongs to the file may lie anywhere.
func (f *Files) Path(name string) (root, path string) { return "", f.paths[name] }

// Close stops watching. A second Close does nothing.
func (f *Files) Close() error {
	f.watch.close()
	return nil
}
