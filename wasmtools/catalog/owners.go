package catalog

import (
	"io/fs"
	"path"
	"path/filepath"

	"github.com/toolsrv/toolsrv/internal/ownership"
)

// warnOfDirectory warns where others than root and the server's user can change the directory, or put another in its
// place: they decide what is served.
func (k *keeper) warnOfDirectory() {
	if err := ownership.Check(k.directory); err != nil {
		k.logger.Warn("others can change the tools directory, and so what is served", "directory", k.directory, "reason", err)
	}
}

// warnOfFiles warns where others can change files that are being loaded: once for all that a scan has found.
func (k *keeper) warnOfFiles(files []found, folders map[string]fs.FileInfo) {
	known := map[string]error{} // of folders
	var first error
	which, count := "", 0
	for _, f := range files {
		err := k.ownerOf(f, folders, known)
		if err == nil {
			continue
		}
		if count++; count == 1 {
			which, first = f.path, err
		}
	}
	if count > 0 {
		k.logger.Warn("others can change files of the tools directory, and so what is served", "file", k.source(which), "reason", first, "files", count)
	}
}

// ownerOf returns why others can change a file, or put another in its place below the directory, or nil.
func (k *keeper) ownerOf(f found, folders map[string]fs.FileInfo, known map[string]error) error {
	if f.linked {
		return ownership.Check(k.source(f.path)) // wherever it leads through
	}
	if err := ownership.CheckFile(k.source(f.path), f.info); err != nil {
		return err
	}
	for name := path.Dir(f.path); name != "."; name = path.Dir(name) {
		err, ok := known[name]
		if !ok {
			if info := folders[name]; info != nil {
				err = ownership.CheckFile(filepath.Join(k.directory, filepath.FromSlash(name)), info)
			}
			known[name] = err
		}
		if err != nil {
			return err
		}
	}
	return nil
}
