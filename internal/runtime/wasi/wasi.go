// Package wasi implements WASI preview 1: stdin, stdout and stderr, clocks, randomness, and the directories that a tool was granted, which it can
// only read. There are no arguments, no environment and no sockets.
package wasi

import (
	"context"
	"crypto/rand"
	"runtime"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
)

// Module is the name of the import module.
const Module = "wasi_snapshot_preview1"

// The estimated times of the host's work, in nanoseconds.
const (
	costRandom = 1  // a random byte
	costStream = 16 // a byte that is searched for line breaks
	costVector = 12 // a buffer in a list, even if it is empty
	costEvent  = 50 // a subscription of poll_oneoff

	costPath    = 3000 // finding a file
	costElement = 1500 // each further element of its path
	costByte    = 1    // each byte of its path
	costOpen    = 8000 // opening it
	costRead    = 1500 // a system call on an open file
	costEntry   = 300  // an entry of a directory
)

// Set returns all functions of the preview. A [Permission] says which files a call may see. Any other function that would need a grant returns
// an error number.
func Set() *hostcall.Set {
	// What docs/generated/functions.md says of the module:
	//
	// All functions of WASI preview 1 exist. A call can read the directories that its tool was granted, and nothing else is granted: no
	// arguments, no environment, no sockets (`EBADF`).
	//
	// - **Clocks and randomness** are real; the CPU clocks show the time that has passed. `poll_oneoff` sleeps until a clock's time or the end
	//   of the call.
	// - **Standard output and error** are log lines at the level info, and **standard input** is at its end. In a [plain
	//   program](abi.md#plain-wasi-programs) 1 is the output, and 0 the input. Seeking, `fd_pread`, `fd_pwrite` and `fd_advise` are `ESPIPE` for
	//   these three; all else succeeds, and closing changes nothing.
	// - **`proc_exit`** in `toolsrv_call` is a trap, whatever the code.
	// - **Directories.** Descriptor 3 is `/`, always open, and the only one that `fd_prestat_get` knows. A granted directory is in it under its
	//   name, as `/geo`; in a start, and without a grant, it is empty. Paths go by their text: `a/..` is `.`, whatever `a` is. There are regular
	//   files, directories, and links that stay in their directory. A read gets at most 64 KiB, and `fd_readdir` leaves out `.` and `..`. Device
	//   and inode are made up. A call ends with all of its descriptors closed.
	// - **Errors**: `ENOTCAPABLE` for whatever leads out of a directory, for absolute paths and links, and for all paths without a grant;
	//   `EACCES` for opening a device, a pipe or a socket; `EROFS` for whatever would write (`EBADF` for `fd_write` and `fd_pwrite`); `EMFILE` for
	//   the 65th descriptor of a call, `ENFILE` for more than all calls together may have; `ENOTSUP` for `fd_renumber` and `proc_raise`.

	type body = func(*hostcall.Call, []uint64)
	clocks := clocks{time.Now()}
	deny := func(errno uint64) body {
		return func(_ *hostcall.Call, stack []uint64) { stack[0] = errno }
	}
	// on returns a function that answers with stream for the three streams, with file for open files and directories, and with EBADF for any
	// other descriptor.
	on := func(stream, file uint64) body {
		return func(c *hostcall.Call, stack []uint64) {
			switch {
			case uint32(stack[0]) < rootFD:
				stack[0] = stream
			case opened(c, stack[0]) == nil:
				stack[0] = errnoBadF
			default:
				stack[0] = file
			}
		}
	}
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
		{"fd_advise", "iIIi", on(errnoPipe, errnoSuccess)},
		{"fd_allocate", "iII", on(errnoNotSup, errnoROFS)},
		{"fd_close", "i", fdClose},
		{"fd_datasync", "i", on(errnoSuccess, errnoSuccess)},
		{"fd_fdstat_get", "ii", fdStat},
		{"fd_fdstat_set_flags", "ii", on(errnoSuccess, errnoSuccess)},
		{"fd_fdstat_set_rights", "iII", on(errnoNotCapable, errnoNotCapable)},
		{"fd_filestat_get", "ii", fileStat},
		{"fd_filestat_set_size", "iI", on(errnoInval, errnoROFS)},
		{"fd_filestat_set_times", "iIIi", on(errnoNotCapable, errnoROFS)},
		{"fd_pread", "iiiIi", fdPRead},
		{"fd_prestat_dir_name", "iii", prestatName},
		{"fd_prestat_get", "ii", prestat},
		{"fd_pwrite", "iiiIi", on(errnoPipe, errnoBadF)},
		{"fd_read", "iiii", fdRead},
		{"fd_readdir", "iiiIi", fdReadDir},
		{"fd_renumber", "ii", on(errnoNotSup, errnoNotSup)},
		{"fd_seek", "iIii", fdSeek},
		{"fd_sync", "i", on(errnoSuccess, errnoSuccess)},
		{"fd_tell", "ii", fdTell},
		{"fd_write", "iiii", fdWrite},
		{"path_create_directory", "iii", refuse(0)},
		{"path_filestat_get", "iiiii", pathStat},
		{"path_filestat_set_times", "iiiiIIi", refuse(0)},
		{"path_link", "iiiiiii", refuse(4)},
		{"path_open", "iiiiiIIii", pathOpen},
		{"path_readlink", "iiiiii", pathReadLink},
		{"path_remove_directory", "iii", refuse(0)},
		{"path_rename", "iiiiii", refuse(0)},
		{"path_symlink", "iiiii", refuse(2)},
		{"path_unlink_file", "iii", refuse(0)},
		{"poll_oneoff", "iiii", clocks.poll},
		{"proc_raise", "i", deny(errnoNotSup)},
		{"random_get", "ii", randomGet},
		{"sched_yield", "", schedYield},
		{"sock_accept", "iii", deny(errnoBadF)},
		{"sock_recv", "iiiiii", deny(errnoBadF)},
		{"sock_send", "iiiii", deny(errnoBadF)},
		{"sock_shutdown", "ii", deny(errnoBadF)},
	}
	funcs := []hostcall.Function{{Name: "proc_exit", Params: "i", Do: procExit}}
	for _, f := range list {
		funcs = append(funcs, hostcall.Function{Name: f.name, Params: f.params, Results: "i", Do: f.do})
	}
	return &hostcall.Set{Module: Module, Functions: funcs, Target: "in C and Rust: target wasm32-wasip1, in Go: GOOS=wasip1"}
}

// procExit ends the guest. A program's last line on stderr is its reason.
func procExit(c *hostcall.Call, stack []uint64) {
	last := ""
	if p, ok := c.Local().(*process); ok {
		p.flush(c)
		last = string(p.last)
	}
	c.Exit(uint32(stack[0]), last)
}

// schedYield lets all others run that want to. How long that takes has nothing to do with its cost.
func schedYield(c *hostcall.Call, stack []uint64) {
	c.Wait(func(context.Context) { runtime.Gosched() })
	stack[0] = errnoSuccess
}

// zeroSizes says that there are no arguments, or no environment.
func zeroSizes(c *hostcall.Call, stack []uint64) {
	c.WriteUint32(stack[0], 0)
	c.WriteUint32(stack[1], 0)
	stack[0] = errnoSuccess
}

// maxChunk is the most bytes of a log stream or of randomness that are processed at a time. After each such piece, the call's deadline is checked.
const maxChunk = 64 << 10

func randomGet(c *hostcall.Call, stack []uint64) {
	rest := c.View(stack[0], stack[1])
	for len(rest) > 0 {
		piece := rest[:min(len(rest), maxChunk)]
		c.Charge(costRandom * len(piece))
		rand.Read(piece) // never fails
		rest = rest[len(piece):]
	}
	stack[0] = errnoSuccess
}
