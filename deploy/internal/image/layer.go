package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"io"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// An entry is a file of a layer, or a folder, whose name ends in a slash.
type entry struct {
	name    string
	mode    int64 // with the sticky bit in tar's form
	owner   int   // also the number of the group
	content []byte
}

// pack returns a tar of entries that all have the same time.
func pack(entries []entry, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	t := tar.NewWriter(&out)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: e.mode, Uid: e.owner, Gid: e.owner, Size: int64(len(e.content)), ModTime: at, Format: tar.FormatUSTAR, Typeflag: tar.TypeReg}
		if strings.HasSuffix(e.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := t.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := t.Write(e.content); err != nil {
			return nil, err
		}
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// layerOf returns a layer, compressed with gzip: zstd would save an eighth (1.6 MiB), and some registries and tools still refuse it.
func layerOf(entries []entry, at time.Time) (v1.Layer, error) {
	content, err := pack(entries, at)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	return tarball.LayerFromOpener(open, tarball.WithCompressionLevel(gzip.BestCompression), tarball.WithMediaType(types.OCILayer))
}

// certificates returns the authorities that Mozilla trusts, in PEM. Some authorities are trusted only for certificates issued before a certain day.
// A file can't say that, so these authorities are left out. In 2026 there was one such authority.
func certificates() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // writing to a buffer never fails
		}
	}
	return out.Bytes()
}
