//go:build !wasip1 && !tinygo.wasm

package toolsrv

// export does nothing on the host: tests call the Module itself.
func export(Module) {}
