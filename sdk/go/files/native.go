//go:build !wasip1 && !tinygo.wasm

package files

import (
	"io/fs"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
	"github.com/toolsrv/toolsrv/sdk/go/internal/double"
)

// none is a folder that was not granted.
type none struct{}

func (none) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
}

func dir(c *toolsrv.Call, name string) fs.FS {
	if host, ok := c.Value(double.Key{}).(double.Host); ok {
		if found := host.Dir(name); found != nil {
			return found
		}
	}
	return none{}
}
