package registry

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/toolsrv/toolsrv/internal/wholefile"
)

// Errors of a cache that another source shares.
var (
	// ErrUncached is returned by Keep where the folder can't keep anything.
	ErrUncached = errors.New("the cache keeps nothing")
	// ErrOther is returned by Keep for a content that is not what its digest says.
	ErrOther = errors.New("it is not what its digest says")
)

// Keep keeps what pull writes, which must have a digest, in hexadecimal, and a size in bytes. by needs it from now on.
func (c *Cache) Keep(by any, digest string, size int64, pull func(io.Writer) error) error {
	if c.wrong != nil || os.MkdirAll(c.folder, 0o700) != nil {
		return ErrUncached
	}
	f, err := os.CreateTemp(c.folder, pullPrefix)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUncached, err)
	}
	sum := sha256.New()
	disk := &writer{w: f}
	err = pull(io.MultiWriter(disk, sum))
	if failed := errors.Join(disk.failed, f.Close()); failed != nil {
		err = fmt.Errorf("%w: %w", ErrUncached, failed)
	}
	if err == nil && fmt.Sprintf("%x", sum.Sum(nil)) != digest {
		err = ErrOther
	}
	if err == nil {
		c.use(by, digest)
		if err = os.Rename(f.Name(), c.modulePath(digest)); err != nil {
			err = fmt.Errorf("%w: %w", ErrUncached, err)
		}
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// Open opens what is kept with a digest, in hexadecimal, and a size. The last Read fails where it is not what the digest says.
func (c *Cache) Open(digest string, size int64) (io.ReadCloser, error) {
	return c.open(record{Module: "sha256:" + digest, Size: size})
}

// UseOnly says which digests a source needs, and no others. Release says that it needs none any more.
func (c *Cache) UseOnly(by any, digests []string) { c.useOnly(by, digests...) }

// Release is the opposite of UseOnly.
func (c *Cache) Release(by any) { c.release(by) }

// Note keeps what a source with an ID knows, beside its modules.
func (c *Cache) Note(id string, content []byte) error {
	if c.wrong != nil {
		return c.wrong
	}
	return wholefile.Write(c.recordPath(id), content)
}

// Noted returns what Note has kept, of most bytes at most, or nil.
func (c *Cache) Noted(id string, most int64) []byte {
	if c.wrong != nil {
		return nil
	}
	f, err := os.Open(filepath.Clean(c.recordPath(id)))
	if err != nil {
		return nil
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil || int64(len(content)) > most {
		return nil
	}
	return content
}
