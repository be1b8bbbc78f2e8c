// Package sbom writes what each program of a release contains, as CycloneDX and as SPDX: Go's modules, and the sources of the interpreters.
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
	License string // an SPDX expression, or words if its own parts have several licences
	URL     string // the package URL, if it is in a registry
	SHA256  string // in hexadecimal: the digest of the file in the registry, or for a Go module the digest in go.sum, which is made from its files
	Parts   []Part // the parts that it was built from
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

// A document has the content of both formats.
type document struct {
	name    string
	release *release.Release
	program Part
}

// program returns the document about the program for a system.
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

// escape returns a version in the form for a package URL.
func escape(version string) string { return strings.ReplaceAll(version, "+", "%2B") }

// isExpression reports whether a licence is an SPDX expression rather than words.
func isExpression(license string) bool {
	words := strings.Fields(license)
	for i, word := range words {
		if operator := word == "AND" || word == "OR" || word == "WITH"; operator != (i%2 == 1) || strings.ContainsAny(word, ",'") {
			return false
		}
	}
	return len(words)%2 == 1
}
