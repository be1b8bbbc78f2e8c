//go:build !unix

package javascript_test

import "os"

// pipe makes a folder: this system has no named pipes in folders.
func pipe(path string) error { return os.Mkdir(path, 0o700) }
