// Package wasi is WASI preview 1 with nothing granted: stdin, stdout and stderr, clocks, randomness, and no files, arguments,
// environment or sockets. docs/abi.md describes it.
package wasi

import (
	"crypto/rand"
	"runtime"
	"time"

	"github.com/toolsrv/toolsrv/runtime/hostabi"
)

// Module is the name of the import module.
const Module = "wasi_snapshot_preview1"

// The error numbers that are used here.
const (
	errnoSuccess    = 0
	errnoBadF       = 8
	errnoInval      = 28
	errnoNotSup     = 58
	errnoPipe       = 70 // ESPIPE: this cannot seek
	errnoNotCapable = 76
)

// What the host's work is estimated to take, in nanoseconds.
const (
	costRandom = 1  // of a random byte
	costStream = 16 // of a byte that is searched for lines
	costVector = 12 // of a buffer in a list of them, empty or not
	costEvent  = 50 // of a subscription of poll_oneoff
)

// Set returns all functions of the preview. What needs a grant answers with an error number. The three file descriptors
// are always open.
func Set() *hostabi.Set {
	type body = func(*hostabi.Call, []uint64)
	clocks := clocks{time.Now()}
	deny := func(errno uint64) body {
		return func(_ *hostabi.Call, stack []uint64) { stack[0] = errno }
	}
	// on3 answers for the three descriptors that are open; any other is a bad one.
	on3 := func(errno uint64) body {
		return func(_ *hostabi.Call, stack []uint64) {
			if uint32(stack[0]) > 2 {
				stack[0] = errnoBadF
				return
			}
			stack[0] = errno
		}
	}
	noPath := deny(errnoNotCapable)
	list := []struct {
		name, params string
		do           body
	}{
		{"args_get", "ii", deny(errnoSuccess)},
		{"args_sizes_get", "ii", zeroSizes},
		{"clock_res_get", "ii", clockResolution},
		{"clock_time_get", "iIi", clocks.time},
		{"environ_get", "ii", deny(errnoSuccess)},
		{"environ_sizes_get", "ii", zeroSizes},
		{"fd_advise", "iIIi", on3(errnoPipe)},
		{"fd_allocate", "iII", on3(errnoNotSup)},
		{"fd_close", "i", on3(errnoSuccess)},
		{"fd_datasync", "i", on3(errnoSuccess)},
		{"fd_fdstat_get", "ii", fdStat},
		{"fd_fdstat_set_flags", "ii", on3(errnoSuccess)},
		{"fd_fdstat_set_rights", "iII", on3(errnoNotCapable)},
		{"fd_filestat_get", "ii", fileStat},
		{"fd_filestat_set_size", "iI", on3(errnoInval)},
		{"fd_filestat_set_times", "iIIi", on3(errnoNotCapable)},
		{"fd_pread", "iiiIi", on3(errnoPipe)},
		{"fd_prestat_dir_name", "iii", deny(errnoBadF)},
		{"fd_prestat_get", "ii", deny(errnoBadF)},
		{"fd_pwrite", "iiiIi", on3(errnoPipe)},
		{"fd_read", "iiii", fdRead},
		{"fd_readdir", "iiiIi", on3(errnoNotCapable)},
		{"fd_renumber", "ii", on3(errnoNotSup)},
		{"fd_seek", "iIii", on3(errnoPipe)},
		{"fd_sync", "i", on3(errnoSuccess)},
		{"fd_tell", "ii", on3(errnoPipe)},
		{"fd_write", "iiii", fdWrite},
		{"path_create_directory", "iii", noPath},
		{"path_filestat_get", "iiiii", noPath},
		{"path_filestat_set_times", "iiiiIIi", noPath},
		{"path_link", "iiiiiii", noPath},
		{"path_open", "iiiiiIIii", noPath},
		{"path_readlink", "iiiiii", noPath},
		{"path_remove_directory", "iii", noPath},
		{"path_rename", "iiiiii", noPath},
		{"path_symlink", "iiiii", noPath},
		{"path_unlink_file", "iii", noPath},
		{"poll_oneoff", "iiii", clocks.poll},
		{"proc_raise", "i", deny(errnoNotSup)},
		{"random_get", "ii", randomGet},
		{"sched_yield", "", schedYield},
		{"sock_accept", "iii", deny(errnoBadF)},
		{"sock_recv", "iiiiii", deny(errnoBadF)},
		{"sock_send", "iiiii", deny(errnoBadF)},
		{"sock_shutdown", "ii", deny(errnoBadF)},
	}
	funcs := []hostabi.Function{{Name: "proc_exit", Params: "i", Do: procExit}}
	for _, f := range list {
		funcs = append(funcs, hostabi.Function{Name: f.name, Params: f.params, Results: "i", Do: f.do})
	}
	return &hostabi.Set{Module: Module, Functions: funcs, Target: "in C and Rust: target wasm32-wasip1, in Go: GOOS=wasip1"}
}

// procExit ends the guest. A program's last line on stderr is its reason.
func procExit(c *hostabi.Call, stack []uint64) {
	last := ""
	if s, ok := c.State().(*streams); ok {
		s.flush(c)
		last = string(s.last)
	}
	c.Exit(uint32(stack[0]), last)
}

func schedYield(_ *hostabi.Call, stack []uint64) {
	runtime.Gosched()
	stack[0] = errnoSuccess
}

// zeroSizes tells that there are no arguments, or no environment.
func zeroSizes(c *hostabi.Call, stack []uint64) {
	c.WriteUint32(stack[0], 0)
	c.WriteUint32(stack[1], 0)
	stack[0] = errnoSuccess
}

// maxChunk is the most bytes of a log stream or of randomness that are handled in one go, so that the call's deadline is looked
// at again.
const maxChunk = 64 << 10

func randomGet(c *hostabi.Call, stack []uint64) {
	rest := c.View(stack[0], stack[1])
	for len(rest) > 0 {
		piece := rest[:min(len(rest), maxChunk)]
		c.Charge(costRandom * len(piece))
		rand.Read(piece) // never fails
		rest = rest[len(piece):]
	}
	stack[0] = errnoSuccess
}
