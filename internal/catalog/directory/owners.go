package directory

import (
	"io/fs"
	"path"
	"path/filepath"

	"github.com/toolsrv/toolsrv/internal/ownership"
)

// warnOfDirectory warns if anybody but root and the server's user can change the directory or replace it, and so decide what is
// served.
func (d *Directory) warnOfDirectory() {
	if err := ownership.Check(d.path); err != nil {
		d.logger.Warn("other users can change the tools directory, and so what is served", "directory", d.path, "reason", err)
	}
}

// warnOfFiles warns if others can change files that are about to be loaded: once for all files of a scan.
func (d *Directory) warnOfFiles(files []found, folders map[string]fs.FileInfo) {
	known := map[string]error{} // of folders
	var first error
	which, count := "", 0
	for _, f := range files {
		err := d.ownerOf(f, folders, known)
		if err == nil {
			continue
		}
		if count++; count == 1 {
			which, first = f.path, err
		}
	}
	if count > 0 {
		d.logger.Warn("other users can change files in the tools directory, and so what is served", "file", d.Place(which), "reason", first, "files", count)
	}
}

// ownerOf returns why other users can change or replace a file, or a folder between it and the directory. It returns nil if they can't.
func (d *Directory) ownerOf(f found, folders map[string]fs.FileInfo, known map[string]error) error {
	if f.linked {
		return ownership.Check(d.Place(f.path)) // checks every folder on the way
	}
	if err := ownership.CheckFile(d.Place(f.path), f.info); err != nil {
		return err
	}
	for name := path.Dir(f.path); name != "."; name = path.Dir(name) {
		err, ok := known[name]
		if !ok {
			if info := folders[name]; info != nil {
				err = ownership.CheckFile(filepath.Join(d.path, filepath.FromSlash(name)), info)
			}
			known[name] = err
		}
		if err != nil {
			return err
		}
	}
	return nil
}
