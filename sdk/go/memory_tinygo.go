//go:build tinygo.wasm

package toolsrv

//export llvm.wasm.memory.size.i32
func memorySize(index int32) int32

//export llvm.wasm.memory.grow.i32
func memoryGrow(index, pages int32) int32

// TinyGo doubles the memory each time it is full, so a tool never has more than its first memory times a power of two:
// a tool that starts with 9 pages would run out of memory at 36 of its 64 MiB. One that starts with 16 pages can use all 64.
var _ = func() int32 {
	pages := memorySize(0)
	wanted := int32(1)
	for wanted < pages {
		wanted *= 2
	}
	return memoryGrow(0, wanted-pages)
}()
