package oci

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote"
)

// The source of a module is a separate artifact that refers to the module's, since clients such as wkg accept no module with a second layer. An
// annotation of the module's manifest has the digest of the source's layer. So a signature of the module covers the source, too, and no other source
// is accepted, whoever attaches one.
const (
	sourceType       = "application/vnd.toolsrv.source.v1"
	sourceLayer      = "application/vnd.toolsrv.source.v1.tar"
	sourceAnnotation = "io.github.toolsrv.source"
)

// MaxSource is how many bytes the files of a source may have.
const MaxSource = 16 << 20

const (
	maxSourceName  = 255                           // bytes of a file's path
	maxSourceLayer = MaxSource + 2048*(maxFiles+1) // since a file has up to two headers
)

// A SourceFile is a file of a module's source.
type SourceFile struct {
	// Name is a path with slashes, below the folder of the source.
	Name    string
	Content []byte
}

// ErrNoSource means that an artifact names no source.
var ErrNoSource = misformed("no source was pushed with it: only scripts have one")

// packSource returns the archive of a source. The same files always give the same archive.
func packSource(files []SourceFile) ([]byte, error) {
	var all bytes.Buffer
	archive, left := tar.NewWriter(&all), sourceBound{files: maxFiles, bytes: MaxSource}
	for _, f := range slices.SortedFunc(slices.Values(files), func(a, b SourceFile) int { return strings.Compare(a.Name, b.Name) }) {
		if err := left.take(f.Name, int64(len(f.Content))); err != nil {
			return nil, err
		}
		if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.Name, Size: int64(len(f.Content)), Mode: 0o644}); err != nil {
			return nil, err
		}
		if _, err := archive.Write(f.Content); err != nil {
			return nil, err
		}
	}
	err := archive.Close()
	return all.Bytes(), err
}

// unpackSource returns the files of an archive, whose names stay below a folder.
func unpackSource(content []byte) (files []SourceFile, err error) {
	archive, left := tar.NewReader(bytes.NewReader(content)), sourceBound{files: maxFiles, bytes: MaxSource}
	for {
		h, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF) && files == nil:
			return nil, misformed("its source has no files")
		case errors.Is(err, io.EOF):
			return files, nil
		case err != nil:
			return nil, misformed("its source is a damaged archive")
		case h.Typeflag != tar.TypeReg:
			return nil, misformed("its source has %.100q, which is not a file", h.Name)
		}
		if err := left.take(h.Name, h.Size); err != nil {
			return nil, err
		}
		one := SourceFile{h.Name, make([]byte, h.Size)} // the size was checked above
		if _, err := io.ReadFull(archive, one.Content); err != nil {
			return nil, misformed("its source is a damaged archive")
		}
		files = append(files, one)
	}
}

// A sourceBound is how much more a source may have.
type sourceBound struct {
	files int
	bytes int64
	names map[string]bool // names in lower case: true for a file, false for a folder
}

// take counts a file. Its name must stay inside the folder on every system, and must not be one that other programs would obey there.
func (b *sourceBound) take(name string, size int64) error {
	bad := func(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune(`\:*?"<>|`, r) }
	key := strings.ToLower(name) // since on some systems names that differ only in case are the same
	_, taken := b.names[key]
	switch {
	case !fs.ValidPath(name) || name == "." || !filepath.IsLocal(filepath.FromSlash(name)) || len(name) > maxSourceName || strings.ContainsFunc(name, bad):
		return misformed("its source has a file %.100q, which is not a path inside a folder", name)
	case obeyed(key):
		return misformed("its source has a file %.100q, which is hidden, or git would obey it", name)
	case taken:
		return misformed("its source has two files %.100q", name)
	case b.files == 0:
		return misformed("its source has more than %d files", maxFiles)
	case size < 0 || size > b.bytes:
		return misformed("its source has more than %d bytes", MaxSource)
	}
	if b.names == nil {
		b.names = map[string]bool{}
	}
	b.names[key] = true
	for folder := path.Dir(key); folder != "."; folder = path.Dir(folder) {
		if b.names[folder] {
			return misformed("its source has %.100q as a file and as a folder", folder)
		}
		b.names[folder] = false
	}
	b.files--
	b.bytes -= size
	return nil
}

// obeyed reports whether a name, in lower case, is hidden or could be part of a git repository. The package folders of pnpm, Bun, Deno and npm are
// excepted. git runs commands from a repository's configuration as soon as somebody runs git status, and treats any folder with HEAD, objects and
// refs as a repository.
func obeyed(name string) bool {
	above := ""
	for part := range strings.SplitSeq(name, "/") {
		packages := above == "node_modules" && (part == ".pnpm" || part == ".bun" || part == ".deno" || part == ".store")
		if part == "head" || strings.HasPrefix(part, ".") && !packages {
			return true
		}
		above = part
	}
	return false
}

// attachSource attaches a source to the artifact of its module. name is the name of the module.
func attachSource(ctx context.Context, repository *remote.Repository, of ocispec.Descriptor, name string, source []byte) error {
	layer := ocispec.Descriptor{MediaType: sourceLayer, Digest: digest.FromBytes(source), Size: int64(len(source))}
	layer.Annotations = map[string]string{ocispec.AnnotationTitle: strings.TrimSuffix(name, path.Ext(name)) + "-source.tar"}
	if err := attach(ctx, repository, of, sourceType, layer, source, nil); err != nil {
		return fmt.Errorf("attach the source: %w", err)
	}
	return nil
}

// fetchSource returns the source that an artifact names.
func fetchSource(ctx context.Context, repository *remote.Repository, a *Artifact) ([]SourceFile, error) {
	layer, err := sourceOf(ctx, repository, a)
	if err != nil {
		return nil, err
	}
	content, err := fetchBlob(ctx, repository, layer, maxSourceLayer)
	if err != nil {
		return nil, fmt.Errorf("its source: %w", err)
	}
	return unpackSource(content)
}

// sourceOf returns the layer of the source that an artifact names. It searches the artifacts that refer to the given one.
func sourceOf(ctx context.Context, repository *remote.Repository, a *Artifact) (layer ocispec.Descriptor, err error) {
	named := a.Annotations[sourceAnnotation]
	if named == "" {
		return layer, ErrNoSource
	}
	if err := CheckDigest(named); err != nil {
		return layer, misformed("its source: %v", err)
	}
	all, err := referrers(ctx, repository, a.top, sourceType, func(d ocispec.Descriptor) bool { return d.ArtifactType == sourceType })
	if err != nil {
		return layer, err
	}
	for i, one := range all {
		if i == maxSignatures {
			return layer, misformed("its source is not among the first %d artifacts that refer to it", maxSignatures)
		}
		content, err := fetchManifest(ctx, repository, one)
		if err != nil {
			if ctx.Err() != nil {
				return layer, err
			}
			continue // this is not the source, or the registry can't deliver it
		}
		m, err := readManifest(content)
		if err != nil || m.ArtifactType != sourceType || len(m.Layers) != 1 || m.Layers[0].Digest.String() != named {
			continue
		}
		if err := checkDescriptor(m.Layers[0], maxSourceLayer); err != nil {
			return layer, misformed("its source %v", err)
		}
		return m.Layers[0], nil
	}
	return layer, misformed("the registry doesn't have the source %s that it refers to", named)
}
