package admin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/catalog/bucket"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/upload"
	"github.com/toolsrv/toolsrv/internal/versions"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A keeper knows the versions of files, and which were rolled back.
type keeper interface {
	IsOn() bool
	Of(f versions.File) ([]versions.Version, error)
	Files(source string) ([]versions.File, error)
	RolledBack(f versions.File) (versions.Rollback, bool)
	Read(f versions.File, digest string) ([]byte, error)
	Roll(ctx context.Context, r versions.Rollback) error
	Unroll(ctx context.Context, f versions.File) (bool, error)
}

var (
	_ keeper = (*versions.Store)(nil)
	_ keeper = (*bucket.Bucket)(nil)
)

// keeper returns who has the versions of the files of a source.
func (r files) keeper(source string) keeper {
	for _, d := range r.Service.Directories() {
		if d.ID == source && d.Bucket != nil {
			return d.Bucket
		}
	}
	return r.Service.Versions
}

// bucketOf returns the bucket that is a source, or nil.
func (r files) bucketOf(source string) *bucket.Bucket {
	b, _ := r.keeper(source).(*bucket.Bucket)
	return b
}

// An incoming file is one that is coming, and not in its place yet.
type incoming interface {
	io.Writer
	Digest() string
	Size() int64
	Content() ([]byte, error)
	Close()
}

// A spot is where a file lies in a directory or a bucket, or is to lie.
type spot struct {
	upload.Directory
	bucket *bucket.Bucket // nil: it is the directory
	keeper
	catalog.FileID
	place string // for people
}

// spotIn returns where a file of a directory lies.
func (r files) spotIn(d core.Directory, name string) *spot {
	return &spot{upload.Directory{Path: d.ID, Scripts: d.Scripts}, d.Bucket, r.keeper(d.ID), catalog.FileID{SourceID: d.ID, Name: name}, d.Place(name)}
}

// path returns where the file is.
func (at *spot) path() string {
	if at.bucket != nil {
		return at.bucket.Place(at.Name)
	}
	return filepath.Join(at.Path, filepath.FromSlash(at.Name))
}

// version returns what the file is to versions of files.
func (at *spot) version() versions.File { return versions.File{Source: at.SourceID, Name: at.Name} }

// begin begins to take a file.
func (at *spot) begin() (incoming, error) {
	if at.bucket != nil {
		return at.bucket.Begin(at.Name)
	}
	return at.Directory.Begin(at.Name)
}

// lying is what lies in a file's place.
type lying struct {
	digest  string // empty: nothing
	content []byte // of what lies on disk
	there   bucket.Lying
}

func (at *spot) lying() (lying, error) {
	if at.bucket != nil {
		there, err := at.bucket.Look(at.Name)
		if err != nil {
			return lying{}, badFile(err)
		}
		return lying{digest: there.Digest, there: there}, nil
	}
	content, err := at.Directory.Read(at.Name, sandbox.MaxModule)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return lying{}, nil
	case err != nil:
		return lying{}, badFile(err)
	}
	sum := sha256.Sum256(content)
	return lying{digest: hex.EncodeToString(sum[:]), content: content}, nil
}

// still returns an error where something else lies in the file's place: somebody has written it while the new file was checked, and would lose what he
// wrote. Of a bucket, the change itself finds that.
func (at *spot) still(was lying) error {
	if at.bucket != nil {
		return nil
	}
	now, err := at.lying()
	if err == nil && now.digest != was.digest {
		return changing()
	}
	return err
}

// put puts a file that has come into its place, which ends a rollback. paths are those of its tools.
func (at *spot) put(ctx context.Context, f incoming, was lying, paths []string) error {
	if err := at.still(was); err != nil {
		return err
	}
	if coming, ok := f.(*bucket.Incoming); ok {
		return badFile(at.bucket.Commit(ctx, at.Name, coming, was.there, paths))
	}
	if err := f.(*upload.File).Commit(); err != nil {
		return badFile(err)
	}
	_, err := at.Unroll(ctx, at.version())
	return err
}

// remove removes the file, which ends a rollback.
func (at *spot) remove(ctx context.Context, was lying) error {
	if at.bucket != nil {
		return badFile(at.bucket.Remove(ctx, at.Name, was.there))
	}
	if err := at.Directory.Remove(at.Name); err != nil {
		return badFile(err)
	}
	_, err := at.Unroll(ctx, at.version())
	return err
}

// stateError returns what an error of the state is for who asks, or nil where it is not one.
func stateError(err error) error {
	switch {
	case errors.Is(err, state.ErrConflict):
		return changing()
	case errors.Is(err, state.ErrUnavailable), errors.Is(err, state.ErrQuota):
		return &wasmtools.Error{Code: wasmtools.CodeNotReady, Message: sentence(err), Err: err}
	}
	return nil
}
