// Package wholefile writes files whole or not at all, so that a reader never sees half of one.
package wholefile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Check returns why Write could not make or replace a file, as far as that can be told beforehand, or nil.
func Check(name string) error {
	switch info, err := os.Stat(name); {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a folder: name a file, such as %s", name, filepath.Join(name, "tool.wasm"))
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file: name another", name)
	}
	folder := filepath.Dir(name)
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no folder %s: make it first", folder)
	}
	return nil
}

// Write makes or replaces a file. A replaced file keeps its mode, and a symbolic link stays a link.
func Write(name string, content []byte) error {
	if err := Check(name); err != nil {
		return err
	}
	target := name
	mode := fs.FileMode(0)
	if info, err := os.Stat(name); err == nil {
		mode = info.Mode().Perm()
		if target, err = filepath.EvalSymlinks(name); err != nil {
			return err
		}
	}
	// Nobody can foresee the temporary name, and a server that watches the folder ignores it.
	temp := filepath.Join(filepath.Dir(target), "."+filepath.Base(target)+"."+rand.Text()[:8]+".tmp")
	err := writeNew(temp, content, mode)
	if err == nil {
		err = os.Rename(temp, target)
	}
	if err == nil {
		return nil
	}
	_ = os.Remove(temp) // it may be gone already
	if cause := errors.Unwrap(err); cause != nil {
		err = cause // without the temporary name, which means nothing to people
	}
	return fmt.Errorf("%s: %w", name, err)
}

// writeNew writes a file that does not exist yet, with a mode, or the default mode if that is 0.
func writeNew(name string, content []byte, mode fs.FileMode) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil && mode != 0 {
		err = file.Chmod(mode)
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}

// SyncFolder makes the names in a folder durable, if the system can.
func SyncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := folder.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrInvalid) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}
