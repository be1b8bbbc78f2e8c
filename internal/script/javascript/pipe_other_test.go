//go:build !unix

package javascript_test

import "os"

// pipe makes a folder: there are no pipes with names in folders here.
func pipe(path string) error { return os.Mkdir(path, 0o700) }
