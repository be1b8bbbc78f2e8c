package precedence

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/toolsrv/toolsrv/internal/wholefile"
)

// maxRecord is the largest record in bytes that is read.
const maxRecord = 4 << 20

// A record is a Precedence on disk.
type record struct {
	// Source is the ID of the files' source. A record of another source is ignored.
	Source string `json:"source"`
	// WaitsFor is the Precedence.
	WaitsFor Precedence `json:"waits_for"`
}

// Read returns the Precedence in a source's record. A missing record is an empty one.
func Read(name, source string) (Precedence, error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
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
	if r.Source != source {
		return nil, nil
	}
	return r.WaitsFor, nil
}

// Write replaces a record atomically. If the Precedence is empty, it removes the record.
func (p Precedence) Write(name, source string) error {
	if len(p) == 0 {
		if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	text, err := json.Marshal(record{source, p})
	if err != nil {
		return err
	}
	return wholefile.Write(name, text)
}
