//go:build wasip1 || tinygo.wasm

package files

import (
	"io/fs"
	"os"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
)

func dir(_ *toolsrv.Call, name string) fs.FS { return os.DirFS("/" + name) }
