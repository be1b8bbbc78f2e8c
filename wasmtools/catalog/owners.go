package catalog

import (
	"io/fs"
	"path"
	"path/filepath"

	"github.com/toolsrv/toolsrv/internal/ownership"
)

// warnOfDirectory warns where others than root and the server's user can change the directory, or put another in its
// place: they decide what is served.
func (r *reconciler) warnOfDirectory() {
	if err := ownership.Check(r.directory); err != nil {
		r.logger.Warn("others can change the tools directory, and so what is served", "directory", r.directory, "reason", err)
	}
}

// warnOfFiles warns where others can change files that are being loaded: once for all that a scan has found.
func (r *reconciler) warnOfFiles(files []found, folders map[string]fs.FileInfo) {
	known := map[string]error{} // of folders
	var first error
	which, count := "", 0
	for _, f := range files {
		err := r.ownerOf(f, folders, known)
		if err == nil {
			continue
		}
		if count++; count == 1 {
			which, first = f.path, err
		}
	}
	if count > 0 {
		r.logger.Warn("others can change files of the tools directory, and so what is served", "file", r.source(which), "reason", first, "files", count)
	}
}

// ownerOf returns why others can change a file, or put another in its place below the directory, or nil.
func (r *reconciler) ownerOf(f found, folders map[string]fs.FileInfo, known map[string]error) error {
	if f.linked {
		return ownership.Check(r.source(f.path)) // wherever it leads through
	}
	if err := ownership.CheckFile(r.source(f.path), f.info); err != nil {
		return err
	}
	for name := path.Dir(f.path); name != "."; name = path.Dir(name) {
		err, ok := known[name]
		if !ok {
			if info := folders[name]; info != nil {
				err = ownership.CheckFile(filepath.Join(r.directory, filepath.FromSlash(name)), info)
			}
			known[name] = err
		}
		if err != nil {
			return err
		}
	}
	return nil
}
