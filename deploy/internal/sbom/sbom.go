// Package sbom says what each program of a release contains, in CycloneDX and in SPDX: Go's modules, and what the interpreters were built
// from.
package sbom

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"

	"github.com/toolsrv/toolsrv/deploy/internal/release"
)

// A Part is something in a program that has a version and a licence of its own.
type Part struct {
	Name    string
	Version string
	License string // an SPDX expression; words where the parts of a part have several
	URL     string // the package URL, where a registry has it
	SHA256  string // in hex: of the file that the registry has; of a Go module what go.sum has, which is made of the files in it
	Parts   []Part // what it was built from
}

// Make writes toolsrv_SYSTEM.cdx.json and toolsrv_SYSTEM.spdx.json for each system.
func Make(_ context.Context, r *release.Release) error {
	for _, s := range release.Systems() {
		p, err := program(r, s)
		if err != nil {
			return err
		}
		for ending, write := range map[string]func(*document) ([]byte, error){".cdx.json": cycloneDX, ".spdx.json": spdx} {
			name := "toolsrv_" + s.String()
			content, err := write(&document{name, r, p})
			if err != nil {
				return err
			}
			if err := r.Write(name+ending, content); err != nil {
				return err
			}
		}
	}
	return nil
}

// A document is what both formats say.
type document struct {
	name    string
	release *release.Release
	program Part
}

// program returns what was built for a system, with its parts.
func program(r *release.Release, s release.System) (Part, error) {
	file := r.Program(s)
	content, err := os.ReadFile(file)
	if err != nil {
		return Part{}, err
	}
	sum := sha256.Sum256(content)
	parts, err := Parts(r, s)
	return Part{
		Name: "toolsrv", Version: r.Version, License: "Apache-2.0", SHA256: hex.EncodeToString(sum[:]),
		URL:   "pkg:golang/github.com/toolsrv/toolsrv@" + escape("v"+r.Version) + "?goos=" + s.OS + "&goarch=" + s.Arch + "#cmd/toolsrv",
		Parts: parts,
	}, err
}

// escape writes a version as a package URL has it.
func escape(version string) string { return strings.ReplaceAll(version, "+", "%2B") }

// isExpression reports whether a licence is an SPDX expression, and not words.
func isExpression(license string) bool {
	words := strings.Fields(license)
	for i, word := range words {
		if operator := word == "AND" || word == "OR" || word == "WITH"; operator != (i%2 == 1) || strings.ContainsAny(word, ",'") {
			return false
		}
	}
	return len(words)%2 == 1
}
