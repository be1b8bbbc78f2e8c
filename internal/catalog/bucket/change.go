package bucket

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog/registry"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/versions"
)

const (
	// removedFor is how long a removed file can be restored.
	removedFor = 30 * 24 * time.Hour
	// seenWithin bounds the time from a change until this process sees it.
	seenWithin = 5 * time.Second
	// readWithin is how long reading a version may take.
	readWithin = 30 * time.Second
)

// A Lying file is what lies under a name at one moment. A change that is based on it is made only if that has not changed. Otherwise it fails with
// [state.ErrConflict].
type Lying struct {
	// Digest is the digest of the content, or empty if there is no content.
	Digest string
	was    file
}

// CheckName returns an error if a file may not have this name.
func (b *Bucket) CheckName(name string) error { return b.names.CheckName(name) }

// Look returns what lies under a name, as the state has it now. It asks the state, since the previous change may have been made on another server.
func (b *Bucket) Look(name string) (Lying, error) {
	if err := b.CheckName(name); err != nil {
		return Lying{}, err
	}
	if err := b.refresh(name); err != nil {
		return Lying{}, err
	}
	f, err := b.at(name)
	return Lying{f.Digest, f}, err
}

// refresh waits until this process has the state's current record of a file.
func (b *Bucket) refresh(name string) error {
	ctx, cancel := context.WithTimeoutCause(b.ctx, seenWithin, state.ErrUnavailable)
	defer cancel()
	if s, ok := b.space.(state.Shared); ok {
		if err := s.Refresh(ctx); err != nil {
			return err
		}
	}
	e, there, err := b.space.Get(ctx, name, state.MaxValue)
	if err != nil || !there {
		return err
	}
	_, err = b.await(ctx, name, e.Version)
	return err
}

// at returns a file that may be changed.
func (b *Bucket) at(name string) (f file, err error) {
	if err := b.CheckName(name); err != nil {
		return f, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	f, known := b.files[name]
	switch {
	case !b.synced || b.failed != nil:
		return f, fmt.Errorf("%w: the bucket's content is not known", state.ErrUnavailable)
	case errors.Is(f.err, state.ErrNewer):
		return f, f.err
	case known:
		return f, nil
	case b.bytes > b.most-maxRecord:
		return f, errMore
	case len(b.files) >= mostRecords:
		return f, fmt.Errorf("there are %d files in the bucket, including removed ones: at most %d are allowed", len(b.files), mostRecords)
	}
	for other := range b.files { // on a file system that ignores case, a copy of one would replace the other
		if strings.EqualFold(other, name) {
			return f, fmt.Errorf("there is %s already, whose name differs from %s only in upper and lower case", other, name)
		}
	}
	return f, nil
}

// An Incoming file is being uploaded. Write its content, then Commit it, and Close it in any case.
type Incoming struct {
	file   *os.File
	folder string // has nothing else
	sum    hash.Hash
	size   int64
}

// Begin starts an upload of a file.
func (b *Bucket) Begin(name string) (*Incoming, error) {
	if err := b.CheckName(name); err != nil {
		return nil, err
	}
	folder, err := b.Scratch()
	if err != nil {
		return nil, err
	}
	file, err := os.Create(filepath.Join(folder, "put"))
	if err != nil {
		return nil, errors.Join(err, os.Remove(folder))
	}
	return &Incoming{file: file, folder: folder, sum: sha256.New()}, nil
}

// Write implements io.Writer.
func (f *Incoming) Write(p []byte) (int, error) {
	n, err := f.file.Write(p)
	f.sum.Write(p[:n])
	f.size += int64(n)
	return n, err
}

// Digest returns the SHA-256 of what was written, in lower-case hexadecimal.
func (f *Incoming) Digest() string { return hex.EncodeToString(f.sum.Sum(nil)) }

// Size returns how many bytes were written.
func (f *Incoming) Size() int64 { return f.size }

// Content returns what was written.
func (f *Incoming) Content() ([]byte, error) {
	content := make([]byte, f.size)
	_, err := io.ReadFull(f.reader(), content)
	return content, err
}

func (f *Incoming) reader() io.ReadSeeker { return io.NewSectionReader(f.file, 0, f.size) }

// Close releases what the file holds.
func (f *Incoming) Close() {
	f.file.Close()
	_ = os.RemoveAll(f.folder) // if this fails, it is removed later
}

// Commit replaces what lies under a name with an uploaded file. paths are the paths of its tools. When Commit returns without an error, the change is
// durable, and this process has it.
func (b *Bucket) Commit(ctx context.Context, name string, f *Incoming, was Lying, paths []string) error {
	if f.size > sandbox.MaxModule {
		return fmt.Errorf("it has %d bytes; at most %d are allowed", f.size, sandbox.MaxModule)
	}
	digest := f.Digest()
	if err := b.makeRoom(ctx, f.size); err != nil {
		return err
	}
	// The content is put before the record, so that nobody looks for it in vain. A content without a record is removed later.
	if err := b.objects.Put(ctx, digest, f.reader()); err != nil {
		return err
	}
	// The cache keeps it, so it need not be fetched. A full disk is no reason to fail.
	_ = b.options.Cache.Keep(b, digest, func(w io.Writer) error { _, err := io.Copy(w, f.reader()); return err })
	coming := kept{Digest: digest, Size: f.size, Paths: noted(paths)}
	return b.set(ctx, name, was, 0, func(of *file) record { return of.with(coming, b.options.Versions(), now()) })
}

// Holds reports whether the bucket already has the content of an uploaded file.
func (b *Bucket) Holds(ctx context.Context, f *Incoming) (bool, error) {
	content, err := b.objects.Get(ctx, f.Digest(), f.size)
	if err == nil {
		content = registry.Verify(content, f.Digest(), func() error { return errLost })
		_, err = io.Copy(io.Discard, content)
		content.Close()
	}
	if err != nil && (ctx.Err() != nil || errors.Is(err, state.ErrUnavailable)) {
		return false, err
	}
	return err == nil, nil
}

func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// Remove removes a file. Its versions stay for a time.
func (b *Bucket) Remove(ctx context.Context, name string, was Lying) error {
	return b.set(ctx, name, was, removedFor, func(of *file) record {
		next := record{Kept: of.Kept}
		if served := of.serves(); served != nil {
			next = of.with(*served, b.options.Versions(), now())
			next.Digest, next.Held = "", 0
		}
		return next
	})
}

// set replaces the record of a file with the one that next returns, and waits until this process has the new record.
func (b *Bucket) set(ctx context.Context, name string, was Lying, ttl time.Duration, next func(*file) record) error {
	for {
		made := next(&was.was)
		value, err := state.Encode(form, &made)
		if err != nil {
			return err
		}
		version, err := b.space.Set(ctx, name, value, int64(was.was.version), state.SetOptions{TTL: ttl})
		if err == nil {
			// The change is made, even if the caller no longer waits for it.
			_, err := b.await(context.WithoutCancel(ctx), name, version)
			return err
		}
		if !errors.Is(err, state.ErrConflict) {
			return err
		}
		// Another server was first. If the other server has only put the same content again, nothing is lost.
		now, waited := b.await(ctx, name, was.was.version+1)
		if waited != nil || now.err != nil || now.Digest != was.Digest || was.Digest == "" || (now.Back == nil) != (was.was.Back == nil) || now.Back != nil && *now.Back != *was.was.Back {
			return err
		}
		was.was = now
	}
}

// await waits until this process has a record with a version, or a later one.
func (b *Bucket) await(ctx context.Context, name string, version uint64) (file, error) {
	ctx, cancel := context.WithTimeout(ctx, seenWithin)
	defer cancel()
	for {
		b.mu.Lock()
		now, moved := b.files[name], b.moved
		b.mu.Unlock()
		if now.version >= version {
			return now, nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return now, fmt.Errorf("%w: a change of the file did not arrive here in time", state.ErrUnavailable)
		case <-b.ctx.Done():
			return now, fmt.Errorf("%w: the server is stopping", state.ErrUnavailable)
		}
	}
}

// IsOn reports whether versions are kept.
func (b *Bucket) IsOn() bool { return b.options.Versions() > 1 }

// Of returns the versions of a file, the newest first.
func (b *Bucket) Of(f versions.File) ([]versions.Version, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.files[f.Name]
	return at.versions(), at.err
}

// Files returns the files of which versions are kept, by name.
func (b *Bucket) Files(source string) (all []versions.File, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, f := range b.files {
		if len(f.Kept) > 0 && !f.hidden {
			all = append(all, versions.File{Source: source, Name: name})
		}
	}
	slices.SortFunc(all, func(a, b versions.File) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// RolledBack returns how a file was rolled back.
func (b *Bucket) RolledBack(f versions.File) (versions.Rollback, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.files[f.Name]
	if at.Back == nil {
		return versions.Rollback{}, false
	}
	return versions.Rollback{File: f, Over: at.Digest, Digest: at.Back.Digest, By: at.Back.By, Since: at.Back.Since, Reason: at.Back.Reason}, true
}

// Read returns the content of a version of a file, compared with its digest.
func (b *Bucket) Read(f versions.File, digest string) ([]byte, error) {
	b.mu.Lock()
	at := b.files[f.Name]
	b.mu.Unlock()
	v := at.find(digest)
	if v == nil {
		return nil, unknown(f, digest)
	}
	ctx, cancel := context.WithTimeout(b.ctx, readWithin)
	defer cancel()
	content, err := b.content(ctx, v.Digest, v.Size)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	return io.ReadAll(content)
}

func unknown(f versions.File, digest string) error {
	return fmt.Errorf("the version %s of %s %w", text.ShortDigest(digest), f.Name, versions.ErrUnknown)
}

// Roll serves a version in place of a file's content, if that is still the content that should be rolled back.
func (b *Bucket) Roll(ctx context.Context, r versions.Rollback) error {
	was, err := b.Look(r.Name)
	switch {
	case err != nil:
		return err
	case was.Digest != r.Over:
		return fmt.Errorf("%w: its content is not what should be rolled back", state.ErrConflict)
	case was.was.find(r.Digest) == nil:
		return unknown(r.File, r.Digest)
	}
	return b.set(ctx, r.Name, was, 0, func(of *file) record {
		next := of.record
		next.Held = of.held(of.find(r.Digest))
		next.Back = &back{r.Digest, r.By, r.Since, r.Reason}
		return next
	})
}

// Unroll serves a file's own content again. It reports whether the file was rolled back.
func (b *Bucket) Unroll(ctx context.Context, f versions.File) (bool, error) {
	was, err := b.Look(f.Name)
	if err != nil || was.was.Back == nil {
		return false, err
	}
	return true, b.set(ctx, f.Name, was, 0, func(of *file) record {
		return of.with(*of.find(of.Digest), max(len(of.Kept), b.options.Versions()), now())
	})
}
