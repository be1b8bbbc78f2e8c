package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/toolsrv/toolsrv/internal/keys"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools/config/key"
)

const (
	maxPins     = 1000
	maxFileName = 512 // bytes
)

// pinTables reads the tables [[pin]].
func pinTables(d *document, to *[]Pin) keys.Reader {
	return tableList(d, "pin", maxPins, "pin the files that matter most", to, func(place string, values map[string]any, p *Pin) {
		p.Line = d.line(d.offsets[place])
		var sum [sha256.Size]byte
		d.readTable(place, values, key.Table{
			// a pattern, or a file | the tools, or the name of the file in its source
			"match": keys.Word(&p.Match, `a pattern such as "acme/*", or a file such as "acme/csv.wasm"`, toolsOrFile),
			// 64 hexadecimal digits | what `sha256sum FILE` prints of a module
			"sha256": digestOf(&sum, "sha256sum FILE"),
		})
		p.SHA256 = hex.EncodeToString(sum[:])
		if _, ok := values["match"]; !ok {
			d.fail(place, errors.New(`match is missing: name the tools, as in match = "acme/*", or a file, as in match = "acme/csv.wasm"`))
		}
		if _, ok := values["sha256"]; !ok {
			d.fail(place, errors.New("sha256 is missing: it is what `sha256sum FILE` prints for a module"))
		}
	})
}

// toolsOrFile checks what a pin matches.
func toolsOrFile(s string) (string, error) {
	if !strings.Contains(s, ".") {
		return keys.Pattern(s)
	}
	if len(s) > maxFileName || strings.Contains(s, "*") {
		return "", fmt.Errorf("%q is not the name of a file: it has up to %d bytes, and no *", text.Short(s), maxFileName)
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == "" || part == "." || part == ".." || strings.ContainsFunc(part, func(r rune) bool { return r < ' ' || r == '\\' }) {
			return "", fmt.Errorf("%q is not the name of a file in its source: write one such as acme/csv.wasm", text.Short(s))
		}
	}
	return s, nil
}
