package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
)

// Errors of a cache that another source shares.
var (
	// ErrUncached is returned by Keep where the folder can't keep anything.
	ErrUncached = errors.New("the cache is off")
	// ErrOther is returned by Keep for a content that is not what its digest says.
	ErrOther = errors.New("it doesn't match its digest")
)

// Keep keeps what pull writes, which must have a digest, in hexadecimal. by needs it from now on.
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

// Open opens what is kept with a digest, in hexadecimal, and a size. The last Read fails if it is not what the digest says.
func (c *Cache) Open(digest string, size int64) (io.ReadCloser, error) {
	return c.open(record{Module: "sha256:" + digest, Size: size})
}

// UseOnly says which digests a source needs, and no others. Release says that it needs none any more.
func (c *Cache) UseOnly(by any, digests []string) { c.useOnly(by, digests...) }

// Release is the opposite of UseOnly.
func (c *Cache) Release(by any) { c.release(by) }

// Verify returns a content whose last Read fails with what wrong returns, unless all was what a digest says, in hexadecimal.
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
