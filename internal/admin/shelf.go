package admin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/catalog/bucket"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/upload"
	"github.com/toolsrv/toolsrv/internal/versions"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A keeper knows the versions of files, and which files were rolled back.
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

// An incoming is a file that is being uploaded, and is not in its place yet.
type incoming interface {
	io.Writer
	Digest() string
	Size() int64
	Content() ([]byte, error)
	Close()
}

// A shelf is where the files of a source lie: a directory or a bucket. Files of other sources can only be rolled back.
type shelf interface {
	keeper
	CheckName(name string) error
	// path returns where a file lies, for the audit.
	path(name string) string
	// begin starts an upload.
	begin(name string) (incoming, error)
	// lying returns what lies under a name.
	lying(name string) (lying, error)
	// put puts an uploaded file into its place, and remove removes a file. was is what the caller has found there. Both fail if something else lies
	// there, because somebody has written it meanwhile. Both end a rollback. paths are the paths of the file's tools.
	put(ctx context.Context, name string, f incoming, was lying, paths []string) error
	remove(ctx context.Context, name string, was lying) error
	// keep stores what lies under a name as a version, before it is replaced.
	keep(name string, was lying) error
	// loses reports whether the content of a file can get lost while the file is still known.
	loses() bool
	// holds reports whether the content of an uploaded file is still stored, if the present file has the same content.
	holds(ctx context.Context, f incoming) (bool, error)
	// source returns the digest of a file's present content in its source.
	source(ctx context.Context, s *catalog.FileState) (string, error)
}

// lying is what lies in a file's place.
type lying struct {
	digest  string // empty: nothing
	content []byte // the content of a file on disk
	there   bucket.Lying
}

// shelf returns where the files of a source lie.
func (r files) shelf(source string) shelf {
	on := onDisk{r.Service.Versions, upload.Directory{Path: source}}
	for _, d := range r.Service.Directories() {
		switch {
		case d.ID != source:
		case d.Bucket != nil:
			return inBucket{d.Bucket}
		default:
			on.Directory.Scripts = d.Scripts
		}
	}
	return on
}

// A spot is the place of a file, or of a future one.
type spot struct {
	shelf
	catalog.FileID
	place string // where the file lies, for messages
}

// version returns the file's identity in the store of versions.
func (at *spot) version() versions.File { return versions.File{Source: at.SourceID, Name: at.Name} }

// inBucket is a bucket as a shelf. It keeps versions itself, and detects concurrent changes when it makes a change.
type inBucket struct{ *bucket.Bucket }

func (b inBucket) path(name string) string             { return b.Place(name) }
func (b inBucket) begin(name string) (incoming, error) { return b.Begin(name) }
func (b inBucket) keep(string, lying) error            { return nil }
func (b inBucket) loses() bool                         { return true }

func (b inBucket) holds(ctx context.Context, f incoming) (bool, error) {
	there, err := b.Holds(ctx, f.(*bucket.Incoming))
	return there, badFile(err)
}

func (b inBucket) lying(name string) (lying, error) {
	there, err := b.Look(name)
	return lying{digest: there.Digest, there: there}, badFile(err)
}

func (b inBucket) put(ctx context.Context, name string, f incoming, was lying, paths []string) error {
	return badFile(b.Commit(ctx, name, f.(*bucket.Incoming), was.there, paths))
}

func (b inBucket) remove(ctx context.Context, name string, was lying) error {
	return badFile(b.Remove(ctx, name, was.there))
}

func (b inBucket) source(_ context.Context, s *catalog.FileState) (string, error) {
	was, err := b.lying(s.Name)
	return was.digest, err
}

// onDisk is a directory as a shelf. Its versions are stored elsewhere.
type onDisk struct {
	*versions.Store
	upload.Directory
}

func (d onDisk) path(name string) string             { return filepath.Join(d.Path, filepath.FromSlash(name)) }
func (d onDisk) begin(name string) (incoming, error) { return d.Begin(name) }
func (d onDisk) loses() bool                         { return false }

func (d onDisk) holds(context.Context, incoming) (bool, error) { return true, nil }

// Read returns the content of a version.
func (d onDisk) Read(f versions.File, digest string) ([]byte, error) { return d.Store.Read(f, digest) }

func (d onDisk) lying(name string) (lying, error) {
	content, err := d.Directory.Read(name, sandbox.MaxModule)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return lying{}, nil
	case err != nil:
		return lying{}, badFile(err)
	}
	sum := sha256.Sum256(content)
	return lying{digest: hex.EncodeToString(sum[:]), content: content}, nil
}

// still returns an error if the content under a name is no longer that of was. Somebody has written it while the new file was checked, and must not
// lose it.
func (d onDisk) still(name string, was lying) error {
	now, err := d.lying(name)
	if err == nil && now.digest != was.digest {
		return changing()
	}
	return err
}

func (d onDisk) put(ctx context.Context, name string, f incoming, was lying, _ []string) error {
	if err := d.still(name, was); err != nil {
		return err
	}
	if err := f.(*upload.File).Commit(); err != nil {
		return badFile(err)
	}
	_, err := d.Unroll(ctx, d.file(name))
	return err
}

func (d onDisk) remove(ctx context.Context, name string, _ lying) error {
	if err := d.Remove(name); err != nil {
		return badFile(err)
	}
	_, err := d.Unroll(ctx, d.file(name))
	return err
}

func (d onDisk) keep(name string, was lying) error {
	return d.Keep(d.file(name), was.digest, int64(len(was.content)), bytes.NewReader(was.content))
}

func (d onDisk) file(name string) versions.File { return versions.File{Source: d.Path, Name: name} }

func (d onDisk) source(ctx context.Context, s *catalog.FileState) (string, error) {
	content, err := s.Open(ctx)
	if err == nil {
		defer content.Close()
		h := sha256.New()
		var n int64
		if n, err = io.Copy(h, io.LimitReader(content, sandbox.MaxModule+1)); err == nil && n <= sandbox.MaxModule {
			return hex.EncodeToString(h.Sum(nil)), nil
		}
	}
	if errors.Is(err, catalog.ErrChanged) {
		return "", changing()
	}
	if err == nil {
		err = fmt.Errorf("it has more than %d bytes", sandbox.MaxModule)
	}
	return "", invalid(s.Source + " can't be read, so its changes would go unnoticed: " + err.Error())
}

// stateError returns the caller's error for an error of the state, or nil if the error is not one.
func stateError(err error) error {
	switch {
	case errors.Is(err, state.ErrConflict):
		return changing()
	case errors.Is(err, state.ErrUnavailable), errors.Is(err, state.ErrQuota):
		return &wasmtools.Error{Code: wasmtools.CodeNotReady, Message: sentence(err), Err: err}
	}
	return nil
}
