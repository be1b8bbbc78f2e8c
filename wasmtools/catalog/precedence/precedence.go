// Package precedence keeps on disk which files keep a path from which others.
//
// Two files that want the same path are told apart by who came first, which no look at the directory tells. With what is noted here
// the next start, and `toolsrv check`, decide as the server that runs.
package precedence

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// A Precedence says of a file that waits for a path which files have it. It never changes once it is made.
type Precedence map[string][]string

// Keeps reports whether the file at path keeps a path from the file at other.
func (p Precedence) Keeps(path, other string) bool { return slices.Contains(p[other], path) }

// Equal reports whether both say the same.
func (p Precedence) Equal(other Precedence) bool {
	return maps.EqualFunc(p, other, slices.Equal)
}

// maxRecord is the largest record in bytes that is read.
const maxRecord = 4 << 20

// A record is what a Precedence is on disk.
type record struct {
	// Directory is whose files they are: a record of another one says nothing.
	Directory string `json:"directory"`
	// WaitsFor is the Precedence.
	WaitsFor Precedence `json:"waits_for"`
}

// Read returns what a record says of a directory. One that is missing says nothing.
func Read(name, directory string) (Precedence, error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxRecord {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, maxRecord)
	}
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if r.Directory != absolute(directory) {
		return nil, nil
	}
	return r.WaitsFor, nil
}

// Write replaces a record whole or not at all. That of a Precedence without any entry is removed.
func (p Precedence) Write(name, directory string) error {
	if len(p) == 0 {
		if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	text, err := json.Marshal(record{absolute(directory), p})
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

func absolute(directory string) string {
	if abs, err := filepath.Abs(directory); err == nil {
		return abs
	}
	return directory
}
