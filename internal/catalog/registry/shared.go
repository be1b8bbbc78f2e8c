package registry

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
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
