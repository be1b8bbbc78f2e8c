//go:build tinygo.wasm

package toolsrv

//export llvm.wasm.memory.size.i32
func memorySize(index int32) int32

//export llvm.wasm.memory.grow.i32
func memoryGrow(index, pages int32) int32

// TinyGo doubles the memory each time it is full, so a tool never has more than its first memory times a power of two:
// one of 9 pages would be out of memory at 36 of the 64 MiB that it may have. From 16 pages on it reaches the last.
var _ = func() int32 {
	pages := memorySize(0)
	wanted := int32(1)
	for wanted < pages {
		wanted *= 2
	}
	return memoryGrow(0, wanted-pages)
}()
