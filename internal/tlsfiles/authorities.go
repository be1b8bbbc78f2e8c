package tlsfiles

import (
	"crypto/sha256"
	"crypto/x509"
	"fmt"

	"github.com/toolsrv/toolsrv/internal/textfile"
)

// maxAuthorities is how large a file of authorities may be, in bytes.
const maxAuthorities = 4 << 20

// Authorities reads trusted authorities from a PEM file, and adds the system's if withSystem is true. It also returns the file's SHA-256, so that a
// caller can tell whether the file has changed.
func Authorities(file string, withSystem bool) (pool *x509.CertPool, sum [sha256.Size]byte, err error) {
	content, err := textfile.Regular(file, maxAuthorities)
	if err != nil {
		return nil, sum, fmt.Errorf("read the authorities' certificates: %w", err)
	}
	pool = x509.NewCertPool()
	if withSystem {
		if pool, err = x509.SystemCertPool(); err != nil {
			return nil, sum, fmt.Errorf("read the system's certificates: %w", err)
		}
	}
	if !pool.AppendCertsFromPEM(content) {
		return nil, sum, fmt.Errorf("%s has no certificate in PEM form: name a PEM file", file)
	}
	return pool, sha256.Sum256(content), nil
}
