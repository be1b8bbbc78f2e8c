package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
)

// These are errors of a cache for the other kinds of sources that use it.
var (
	// ErrUncached is returned by Keep if nothing can be kept in the folder.
	ErrUncached = errors.New("the cache is off")
	// ErrOther is returned by Keep for a content that doesn't match its digest.
	ErrOther = errors.New("it doesn't match its digest")
)

// Keep keeps what pull writes, which must have the given digest, in hexadecimal. From now on, the source that is given as by needs the content.
func (c *Cache) Keep(by any, digest string, pull func(io.Writer) error) error {
	wrong, err := c.write(by, func(w io.Writer) (string, error) {
		sum := sha256.New()
		err := pull(io.MultiWriter(w, sum))
		if err == nil && fmt.Sprintf("%x", sum.Sum(nil)) != digest {
			err = ErrOther
		}
		return digest, err
	})
	if wrong != nil {
		return fmt.Errorf("%w: %w", ErrUncached, wrong)
	}
	return err
}

// Open opens the content with a digest, in hexadecimal, and a size. The last Read fails if the content doesn't match the digest.
func (c *Cache) Open(digest string, size int64) (io.ReadCloser, error) {
	return c.open(record{Module: "sha256:" + digest, Size: size})
}

// UseOnly says which digests a source needs: these and no others. Release says that it no longer needs any.
func (c *Cache) UseOnly(by any, digests []string) { c.useOnly(by, digests...) }

// Release says that a source no longer needs any digest.
func (c *Cache) Release(by any) { c.release(by) }

// Verify returns a reader of a content. Its last Read fails with the error that wrong returns, unless the content matches a digest, in hexadecimal.
func Verify(content io.ReadCloser, digest string, wrong func() error) io.ReadCloser {
	return &verified{content, digest, sha256.New(), wrong}
}

type verified struct {
	io.ReadCloser
	want  string
	sum   hash.Hash
	wrong func() error
}

func (v *verified) Read(p []byte) (int, error) {
	n, err := v.ReadCloser.Read(p)
	v.sum.Write(p[:n])
	if errors.Is(err, io.EOF) && hex.EncodeToString(v.sum.Sum(nil)) != v.want {
		return n, v.wrong()
	}
	return n, err
}
