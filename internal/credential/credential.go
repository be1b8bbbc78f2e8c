// Package credential defines what a valid token is, and reads tokens from files and headers.
package credential

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/toolsrv/toolsrv/internal/textfile"
)

// Max is the longest token in bytes.
const Max = 1024

// Prefix begins the tokens that toolsrv makes itself.
const Prefix = "tsv_"

// maxName is the longest name of a token in bytes.
const maxName = 64

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

// Bearer returns the token of a request's Authorization headers, or "" if there is none. Two headers count as none:
// a proxy in front may have looked at the other one.
func Bearer(headers []string) string {
	if len(headers) != 1 {
		return ""
	}
	scheme, token, ok := strings.Cut(headers[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimLeft(token, " ") // RFC 9110, section 11.4: one or more blanks
}

// leastHidden is how many characters must follow the prefix for a text to be taken for a token: fewer give too little of the secret away to matter.
const leastHidden = 20

// Mask returns a text in which everything that looks like one of our tokens is masked, even if it is mistyped or cut off: clients put tokens where
// they don't belong. The prefix stays.
func Mask(s string) string {
	const begin = len(Prefix) - 1 // the length of the prefix without its last character
	var b strings.Builder
	rest := s
	for from := 0; ; {
		at := strings.IndexByte(rest[from:], Prefix[begin])
		if at < 0 {
			break
		}
		at += from
		from = at + 1
		if at < begin || !strings.EqualFold(rest[at-begin:from], Prefix) {
			continue
		}
		end := from
		for end < len(rest) && isTokenCharacter(rest[end]) {
			end++
		}
		if end-from >= leastHidden {
			b.WriteString(rest[:from])
			b.WriteString("[hidden]")
			rest, from = rest[end:], 0
		}
	}
	if b.Len() == 0 {
		return s
	}
	b.WriteString(rest)
	return b.String()
}

func isTokenCharacter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

// CheckName returns what is wrong with the name of a token, or nil. The error does not show the name, which may be a token in the wrong place.
func CheckName(name string) error {
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._@-"
	switch {
	case strings.HasPrefix(name, Prefix):
		return errors.New("the name begins with " + Prefix + ", as tokens do: name the token's owner")
	case isNumbered(name):
		return errors.New("the name is token- and a number, which is what the log calls tokens without a name: name the token's owner")
	case name == "" || len(name) > maxName || strings.Trim(name, allowed) != "":
		return fmt.Errorf("the name is not valid: use 1 to %d of the characters A-Z a-z 0-9 . _ @ -", maxName)
	}
	return nil
}

// isNumbered reports whether a name is like those that the log gives to tokens without a name.
func isNumbered(name string) bool {
	number, ok := strings.CutPrefix(name, "token-")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}
