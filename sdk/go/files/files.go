// Package files reads folders that the operator lets the tool read. The tool declares their names ([toolsrv.Needs]) and the operator says
// which folders they are. In the sandbox "geo" is /geo, which package os reads as well; this package lets a test put something else in its
// place. It is not for TinyGo's target wasm-unknown, which has no files.
package files

import (
	"io/fs"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
)

// Dir returns the folder of a name, to be read with package io/fs. A call reads the files as they are at that moment; the snapshot can't
// contain anything from them, because no folder is granted while a module starts. It must not be used after the call.
func Dir(c *toolsrv.Call, name string) fs.FS { return dir(c, name) }
