package wasi_test

import (
	"context"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/testkit/hosttest"
	"github.com/toolsrv/toolsrv/internal/testkit/wasitest"
)

// The error numbers that tests expect.
const (
	success     = 0
	acces       = 2
	badF        = 8
	exist       = 20
	inval       = 28
	isDir       = 31
	loop        = 32
	mFile       = 33
	nameTooLong = 37
	nFile       = 41
	noEnt       = 44
	notDir      = 54
	notSup      = 58
	roFS        = 69
	pipe        = 70
	notCapable  = 76
)

// TestNothingGranted calls every function that could reach something, with open descriptors and with others.
// Proves: Nothing without a grant
func TestNothingGranted(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		names               string
		stream, root, other uint64 // answers for the descriptors 0 to 2, for 3, and for 4
	}{
		{"args_get environ_get", success, success, success},
		{"fd_close fd_sync fd_datasync fd_fdstat_set_flags fd_fdstat_get fd_filestat_get", success, success, badF},
		{"fd_seek fd_tell fd_pread", pipe, isDir, badF},
		{"fd_pwrite", pipe, badF, badF},
		{"fd_advise", pipe, success, badF},
		{"fd_renumber", notSup, notSup, badF},
		{"fd_allocate", notSup, roFS, badF},
		{"fd_filestat_set_size", inval, roFS, badF},
		{"fd_filestat_set_times", notCapable, roFS, badF},
		{"fd_fdstat_set_rights fd_readdir", notCapable, notCapable, badF},
		{"fd_prestat_get", badF, success, badF},
		{"sock_accept sock_recv sock_send sock_shutdown", badF, badF, badF},
		{"path_create_directory path_filestat_get path_filestat_set_times path_link path_open path_readlink path_remove_directory path_rename path_symlink path_unlink_file",
			notCapable, notCapable, notCapable},
		{"proc_raise", notSup, notSup, notSup},
	} {
		for name := range strings.FieldsSeq(test.names) {
			g := wasitest.Serve(t, nil)
			for fd, want := range []uint64{test.stream, test.stream, test.stream, test.root, test.other} {
				if got := g.Call(name, uint64(fd), 64); got != want {
					t.Errorf("%s of descriptor %d: got %d, want %d", name, fd, got, want)
				}
			}
		}
	}
}

// TestLines writes to stdout and stderr in pieces. Each line is logged once, as is an unfinished one when the call ends.
func TestLines(t *testing.T) {
	t.Parallel()
	g := wasitest.Serve(t, nil)
	write := func(fd uint64, piece string) {
		t.Helper()
		list, count := g.Vectors(uint32(copy(g.Memory[wasitest.Buffer:], piece)))
		if errno := g.Call("fd_write", fd, list, count, wasitest.Result); errno != success {
			t.Errorf("fd_write: got %d", errno)
		}
	}
	long := strings.Repeat("x", hostcall.MaxLine)
	write(1, "a li")
	write(2, "another\r\n\n  \nbeg")
	write(1, "ne\nunended")
	write(2, "un\n"+long)
	write(2, "yyy")
	g.End()
	want := []string{"stderr: another", "stdout: a line", "stderr: begun", "stdout: unended", "stderr: " + long + "y"}
	if got := strings.Join(g.Lines, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("got %.200q, want %.200q", got, want)
	}
}

// TestYield has a call let others run, which may take long. The call still ends when it has to.
// Proves: A tool stops
func TestYield(t *testing.T) {
	t.Parallel()
	g := wasitest.Serve(t, nil)
	if errno := g.Call("sched_yield"); errno != success {
		t.Errorf("got %d", errno)
	}
	ctx, cancel := context.WithCancel(t.Context())
	g.Context = ctx
	cancel()
	if got := hosttest.Trapped(func() { g.Call("sched_yield") }); got != "the call is over" {
		t.Errorf("got the trap %q", got)
	}
}

// TestPoll checks that open descriptors are ready for reading and writing.
func TestPoll(t *testing.T) {
	t.Parallel()
	g := wasitest.Serve(t, grant())
	file, _ := g.Open("geo/cities.csv")
	const read, write = 1, 2
	for _, test := range []struct{ fd, kind, want uint64 }{
		{0, read, success}, {1, write, success}, {2, write, success}, {0, write, badF}, {1, read, badF},
		{file, read, success}, {file, write, success}, {file + 1, read, badF}, {1<<32 - 1, read, badF},
	} {
		subscription := g.Memory[wasitest.Path:][:48]
		clear(subscription)
		subscription[8] = byte(test.kind)
		binary.LittleEndian.PutUint32(subscription[16:], uint32(test.fd))
		if errno := g.Call("poll_oneoff", wasitest.Path, wasitest.Buffer, 1, wasitest.Result); errno != success {
			t.Errorf("poll_oneoff: got %d", errno)
		}
		if got := binary.LittleEndian.Uint16(g.Memory[wasitest.Buffer+8:]); got != uint16(test.want) {
			t.Errorf("descriptor %d, kind %d: got %d, want %d", test.fd, test.kind, got, test.want)
		}
	}
}
