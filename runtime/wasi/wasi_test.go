package wasi_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/runtime/hostabi"
	"github.com/toolsrv/toolsrv/runtime/wasi"
)

// A memory is that of a guest.
type memory []byte

func (m memory) Size() uint32 { return uint32(len(m)) }

func (m memory) Read(offset, length uint32) ([]byte, bool) {
	return m[offset : offset+length], true
}

// A host keeps what is logged.
type host struct {
	hostabi.Outer
	lines []string
}

func (h *host) Look()                                {}
func (h *host) Wait(func(context.Context))           {}
func (h *host) Ends() time.Time                      { return time.Time{} }
func (h *host) Output(b []byte, _ bool)              {}
func (h *host) Fail(b []byte)                        {}
func (h *host) Progress(_, _ float64, _ []byte) bool { return false }
func (h *host) Used(hostabi.Use)                     {}
func (h *host) Hold(int64)                           {}
func (h *host) Log(_ slog.Level, source string, line []byte) bool {
	h.lines = append(h.lines, source+": "+string(line))
	return true
}

// call calls functions by their names, and returns the result.
func call(t *testing.T, c *hostabi.Call, name string, params ...uint64) uint64 {
	t.Helper()
	for _, f := range wasi.Set().Functions {
		if f.Name == name {
			stack := append(params, make([]uint64, 1+len(f.Params)-len(params))...)
			c.Invoke(&f, 0, stack)
			return stack[0]
		}
	}
	t.Fatalf("there is no function %s", name)
	return 0
}

// TestNothingGranted calls every function that could reach something, with the descriptors that are open and others.
func TestNothingGranted(t *testing.T) {
	t.Parallel()
	const success, badF, inval, notSup, pipe, notCapable = 0, 8, 28, 58, 70, 76
	for _, test := range []struct {
		names       string
		open, other uint64 // answers for the descriptors 0 to 2, and for 3
	}{
		{"args_get environ_get", success, success},
		{"fd_close fd_sync fd_datasync fd_fdstat_set_flags fd_fdstat_get fd_filestat_get", success, badF},
		{"fd_seek fd_tell fd_pread fd_pwrite fd_advise", pipe, badF},
		{"fd_allocate fd_renumber", notSup, badF},
		{"fd_filestat_set_size", inval, badF},
		{"fd_fdstat_set_rights fd_filestat_set_times fd_readdir", notCapable, badF},
		{"fd_prestat_get fd_prestat_dir_name sock_accept sock_recv sock_send sock_shutdown", badF, badF},
		{"path_create_directory path_filestat_get path_filestat_set_times path_link path_open path_readlink path_remove_directory path_rename path_symlink path_unlink_file", notCapable, notCapable},
		{"proc_raise", notSup, notSup},
	} {
		for name := range strings.FieldsSeq(test.names) {
			c := hostabi.NewCall(&host{}, hostabi.Guest{Memory: make(memory, 1024), Sets: 1})
			for fd := range uint64(4) {
				want := test.open
				if fd == 3 {
					want = test.other
				}
				if got := call(t, &c, name, fd, 64); got != want {
					t.Errorf("%s of descriptor %d: got %d, want %d", name, fd, got, want)
				}
			}
		}
	}
}

// TestLines writes to stdout and stderr in pieces: each line is logged once, and what has no end when the call ends.
func TestLines(t *testing.T) {
	t.Parallel()
	var h host
	m := make(memory, 64<<10)
	c := hostabi.NewCall(&h, hostabi.Guest{Memory: m, Sets: 1})
	c.Begin(hostabi.Run{Serving: true})
	write := func(fd uint64, piece string) {
		t.Helper()
		copy(m[1024:], piece)
		c.WriteUint32(0, 1024)
		c.WriteUint32(4, uint32(len(piece)))
		if errno := call(t, &c, "fd_write", fd, 0, 1, 8); errno != 0 {
			t.Errorf("fd_write: got %d", errno)
		}
	}
	long := strings.Repeat("x", hostabi.MaxLine)
	write(1, "a li")
	write(2, "another\r\n\n  \nbeg")
	write(1, "ne\nunended")
	write(2, "un\n"+long)
	write(2, "yyy")
	c.End()
	want := []string{"stderr: another", "stdout: a line", "stderr: begun", "stdout: unended", "stderr: " + long + "y"}
	if got := strings.Join(h.lines, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("got %.200q, want %.200q", got, want)
	}
	h.lines = nil
	c.End()
	if len(h.lines) > 0 {
		t.Errorf("lines are logged again: %q", h.lines)
	}
}
