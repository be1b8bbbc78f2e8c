// Package lockfile reads and writes the file beside a configuration that says which digests the configured tags and version ranges of registries had
// when they were locked.
package lockfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/oci"
	"github.com/toolsrv/toolsrv/internal/textfile"
	"github.com/toolsrv/toolsrv/internal/wholefile"
)

// An Entry is the lock of one source.
type Entry struct {
	OCI    string `json:"oci"`
	Tag    string `json:"tag"`
	Digest string `json:"digest"`
}

// A Lock has the locks of all sources. Each pair of a repository and a tag is in it once.
type Lock []Entry

// form is the content of the file.
type form struct {
	Version int  `json:"version"`
	Sources Lock `json:"sources"`
}

// Path returns where the lock of a configuration is: toolsrv.lock for toolsrv.toml.
func Path(config string) string {
	return strings.TrimSuffix(config, filepath.Ext(config)) + ".lock"
}

// Read reads a lock. Where there is no file, nothing is locked.
func Read(path string) (Lock, error) {
	content, err := textfile.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the lock file: %w", err)
	}
	var f form
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&f); err != nil || decoder.More() {
		return nil, fmt.Errorf("%s is damaged: remove it, and run toolsrv lock again", path)
	}
	switch {
	case f.Version > 1:
		return nil, fmt.Errorf("%s has version %d, and this toolsrv reads version 1: update toolsrv, or remove the file and run toolsrv lock again", path, f.Version)
	case f.Version != 1:
		return nil, fmt.Errorf("%s has no version, so toolsrv lock did not write it: remove it, and run toolsrv lock again", path)
	}
	for i, e := range f.Sources {
		if err := oci.CheckDigest(e.Digest); err != nil {
			return nil, fmt.Errorf("%s: sources[%d].digest: %w", path, i, err)
		}
	}
	return f.Sources, nil
}

// Write writes a lock, whole or not at all. If there are no entries, it removes the file.
func Write(path string, l Lock) error {
	if len(l) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	l = slices.SortedFunc(slices.Values(l), func(a, b Entry) int {
		return strings.Compare(a.OCI+"\x00"+a.Tag, b.OCI+"\x00"+b.Tag)
	})
	content, err := json.MarshalIndent(form{1, l}, "", "  ")
	if err != nil {
		return err
	}
	return wholefile.Write(path, append(content, '\n'))
}

// Digest returns the locked digest of a repository's tag, or "".
func (l Lock) Digest(repository, tag string) string {
	for _, e := range l {
		if e.OCI == repository && e.Tag == tag {
			return e.Digest
		}
	}
	return ""
}
