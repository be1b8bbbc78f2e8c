package oci

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/toolsrv/toolsrv/internal/text"
)

// Types of content.
const (
	configType = "application/vnd.wasm.config.v0+json"
	moduleType = "application/wasm"
)

// moduleTypes are the media types of layers with a module: the present one, and older ones.
var moduleTypes = []string{moduleType, "application/vnd.wasm.content.layer.v1+wasm", "application/vnd.module.wasm.content.layer.v1+wasm"}

// A manifest is the manifest of an artifact, or an index of several.
type manifest struct {
	ocispec.Manifest
	Manifests []ocispec.Descriptor `json:"manifests"`
}

func (m *manifest) isIndex() bool { return len(m.Manifests) > 0 }

// forWasm returns the manifest of an index that has the module: the one for wasm, or else the only one for a known platform. Image builders add build
// attestations with an unknown platform.
func (m *manifest) forWasm() (ocispec.Descriptor, error) {
	var wasm, others []ocispec.Descriptor
	for _, d := range m.Manifests {
		switch p := d.Platform; {
		case p != nil && p.Architecture == "wasm":
			wasm = append(wasm, d)
		case p == nil || p.Architecture != "unknown":
			others = append(others, d)
		}
	}
	if len(wasm) == 0 {
		wasm = others
	}
	if len(wasm) != 1 {
		return ocispec.Descriptor{}, misformed("it is an index of %d artifacts: give the digest of one", len(wasm))
	}
	return wasm[0], nil
}

// module returns the layer with the module. If unpack is not nil, it finds the module in the layer.
func (m *manifest) module() (layer ocispec.Descriptor, unpack func(from io.Reader, to io.Writer, most int64) error, err error) {
	var modules, archives []ocispec.Descriptor
	for _, l := range m.Layers {
		switch {
		case slices.Contains(moduleTypes, l.MediaType):
			modules = append(modules, l)
		case strings.HasSuffix(l.MediaType, ".tar"), strings.HasSuffix(l.MediaType, ".tar+gzip"), strings.HasSuffix(l.MediaType, ".tar.gzip"):
			archives = append(archives, l)
		}
	}
	switch {
	case len(modules) == 1:
		return modules[0], nil, nil
	case len(modules) > 1:
		return layer, nil, misformed("it has %d modules: only one per artifact is served", len(modules))
	case len(archives) == 1 && strings.HasSuffix(archives[0].MediaType, "gzip"):
		return archives[0], unzip, nil
	case len(archives) == 1:
		return archives[0], untar, nil
	}
	if len(archives) > 1 {
		return layer, nil, misformed("it is an image with %d layers: a tool's has one, with one .wasm file", len(archives))
	}
	if len(m.Layers) > 0 {
		return layer, nil, misformed("it has no module: its first layer has the type %q, and a module's is %s: push it with that type, or with toolsrv push",
			text.Short(m.Layers[0].MediaType), moduleType)
	}
	return layer, nil, misformed("it has no module: it needs a layer of the type %s", moduleType)
}

// maxUnpacked is how many bytes an archive may hold in addition to its module, and maxFiles how many files.
const (
	maxUnpacked = 1 << 20
	maxFiles    = 1000
)

// unzip finds the module in a compressed archive.
func unzip(from io.Reader, to io.Writer, most int64) error {
	z, err := gzip.NewReader(from)
	if err != nil {
		return misformed("the archive's compression is not the declared one")
	}
	return untar(z, to, most)
}

// untar finds the module in an archive: the only .wasm file. It may also be the module itself, since oras labels as an archive whatever is pushed
// without a type.
func untar(from io.Reader, to io.Writer, most int64) error {
	limited := &io.LimitedReader{R: from, N: most + maxUnpacked}
	start := bufio.NewReader(limited)
	if magic, _ := start.Peek(4); string(magic) == "\x00asm" { // no archive begins like this, since its first file would have no name
		switch n, err := io.Copy(to, io.LimitReader(start, most+1)); {
		case err != nil:
			return misformed("it is damaged")
		case n > most:
			return misformed("it has more than %d bytes, which is the limit", most)
		}
		return nil
	}
	archive, found := tar.NewReader(start), false
	for i := range maxFiles {
		h, err := archive.Next()
		switch {
		case i == 0 && (errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF)):
			return misformed("the layer is neither a module nor an archive with one: push it with toolsrv push")
		case errors.Is(err, io.EOF) && !found:
			return misformed("the archive has no .wasm file")
		case errors.Is(err, io.EOF):
			return nil
		case limited.N <= 0:
			return misformed("the archive holds more than %d bytes", most+maxUnpacked)
		case err != nil:
			return misformed("the archive is damaged")
		case h.Typeflag != tar.TypeReg || path.Ext(h.Name) != ".wasm":
			continue
		case found:
			return misformed("the archive has more than one .wasm file")
		case h.Size > most:
			return misformed("it has %d bytes; the limit is %d", h.Size, most)
		}
		found = true
		if _, err := io.Copy(to, archive); err != nil {
			return misformed("the archive is damaged")
		}
	}
	return misformed("the archive has more than %d files", maxFiles)
}
