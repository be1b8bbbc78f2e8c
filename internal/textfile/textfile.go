// Package textfile reads files that people write.
package textfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// Max is the largest size of a file in bytes: 1 MiB.
const Max = 1 << 20

// ErrTooLarge is why a larger one is refused.
var ErrTooLarge = errors.New("the file is larger than 1 MiB")

// Read reads a file without its byte order mark.
func Read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, Max+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > Max:
		return nil, fmt.Errorf("%s: %w", path, ErrTooLarge)
	}
	return bytes.TrimPrefix(text, []byte("\ufeff")), nil
}
