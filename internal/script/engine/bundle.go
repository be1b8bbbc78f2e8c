package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/internal/text"
)

// A File is a part of a bundle: a script, a module that it imports, or data.
type File struct {
	// Name is a path with slashes. No other file of the bundle has the same name.
	Name string
	Data []byte
}

// magic is the beginning of a bundle. Then comes the number of files, and for each file the length of its name, the length of its data, the name and
// the data. Numbers have 32 bits, in little-endian order, and there is nothing in between.
const magic = "TSB1"

// encode writes a bundle of at most capacity bytes.
func encode(files []File, capacity int) ([]byte, error) {
	if len(files) == 0 {
		return nil, errors.New("a bundle needs a script")
	}
	size := int64(len(magic) + 4)
	seen := map[string]bool{}
	for _, f := range files {
		switch {
		case f.Name == "" || !utf8.ValidString(f.Name):
			return nil, fmt.Errorf("%q is not a valid name of a file in a bundle", text.Short(f.Name))
		case seen[f.Name]:
			return nil, fmt.Errorf("two files of the bundle have the name %q", text.Short(f.Name))
		}
		seen[f.Name] = true
		size += int64(8 + len(f.Name) + len(f.Data))
	}
	// One byte stays zero: interpreters want their source to end with one.
	if size >= int64(capacity) {
		return nil, fmt.Errorf("the script with all its imports has %s, but the engine accepts less than %s: leave out what it doesn't need", text.Size(size), text.Size(int64(capacity)))
	}
	bundle := append(make([]byte, 0, size), magic...)
	bundle = binary.LittleEndian.AppendUint32(bundle, uint32(len(files)))
	for _, f := range files {
		bundle = binary.LittleEndian.AppendUint32(bundle, uint32(len(f.Name)))
		bundle = binary.LittleEndian.AppendUint32(bundle, uint32(len(f.Data)))
		bundle = append(append(bundle, f.Name...), f.Data...)
	}
	return bundle, nil
}
