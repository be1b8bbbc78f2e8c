// Package credential says what can be a token, and reads files of them.
package credential

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/toolsrv/toolsrv/internal/textfile"
)

// Max is the longest token in bytes.
const Max = 1024

// ReadFile reads a file with one token per line. Blank lines, lines that begin with #, and blanks around a token are ignored. A file
// without a token is an error, so that a secret that was not mounted does not open the service to everybody. Errors name the line and
// never show a token.
func ReadFile(path string) ([]string, error) {
	text, err := textfile.Read(path)
	if err != nil {
		return nil, fmt.Errorf("read the tokens: %w", err)
	}
	var tokens []string
	number := 0
	for line := range bytes.Lines(text) {
		number++
		token := string(bytes.TrimSpace(line))
		if token == "" || token[0] == '#' {
			continue
		}
		if err := Check(token); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, number, err)
		}
		tokens = append(tokens, token)
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("%s: the file has no token: write one per line", path)
	}
	return tokens, nil
}

// Check reports what is wrong with a token, without showing it.
func Check(token string) error {
	switch {
	case token == "":
		return errors.New("the token is empty")
	case len(token) > Max:
		return fmt.Errorf("the token has %d bytes; at most %d are allowed", len(token), Max)
	}
	for i := range len(token) {
		if c := token[i]; c <= ' ' || c > '~' {
			return errors.New("the token has a space or a character that is not printable ASCII: use A-Z a-z 0-9 - . _ ~ + / =")
		}
	}
	return nil
}
