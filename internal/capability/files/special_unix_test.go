//go:build unix

package files_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolsrv/toolsrv/internal/capability/files"
)

// TestNothingSpecialIsOpened tries to open what is neither a regular file nor a directory. No open may wait: it would wait forever for the other end
// of a pipe.
// Proves: Files are read, and nothing else
func TestNothingSpecialIsOpened(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "") // the name of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	special := []string{"fifo", "socket"}
	const null = 1<<8 | 3
	if err := syscall.Mknod(filepath.Join(dir, "device"), syscall.S_IFCHR|0o644, null); err == nil {
		special = append(special, "device")
	} else {
		t.Log("devices can't be made here:", err)
	}
	for _, name := range special {
		link(t, name, filepath.Join(dir, "link-to-"+name))
		special = append(special, "link-to-"+name)
	}
	g := serve(t, dir)
	for _, name := range special {
		for _, flags := range []uint64{0, 1 << 1} { // opened as a file, and as a directory
			if _, errno := g.OpenAt(3, 1, "geo/"+name, flags, 1<<1); errno != acces && errno != notDir {
				t.Errorf("open %s: got %d", name, errno)
			}
		}
		if kind, size, errno := g.Stat("geo/"+name, true); kind != 0 || size != 0 || errno != success {
			t.Errorf("stat %s: got the type %d and %d bytes (%d)", name, kind, size, errno)
		}
	}
	if g.Descriptors != 999 {
		t.Errorf("%d descriptors are left of 1000 with one tree open", g.Descriptors)
	}
	for _, name := range []string{"fifo", "socket"} {
		path := filepath.Join(dir, name)
		if err := files.Check(path); err == nil {
			t.Errorf("%s passes as a directory", name)
		}
		if _, errno := serve(t, path).Open("geo"); errno != notDir {
			t.Errorf("%s in place of the directory: got %d, want %d", name, errno, notDir)
		}
	}
}

// TestReplacedByPipes replaces a file with a pipe between the check and the open, as often as possible.
// Proves: Files are read, and nothing else
func TestReplacedByPipes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	write(t, filepath.Join(dir, "real"), "inside")
	write(t, name, "inside")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			_ = syscall.Mkfifo(name+".next", 0o644)
			_ = os.Rename(name+".next", name)
			_ = os.Link(filepath.Join(dir, "real"), name+".next")
			_ = os.Rename(name+".next", name)
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	defer func() { <-stopped }()
	defer close(stop)
	g := serve(t, dir)
	seen := map[uint64]int{}
	for range 5000 {
		content, errno := g.ReadFile("geo/file")
		if content != "" && content != "inside" {
			t.Fatalf("read %q", content)
		}
		seen[errno]++
	}
	if g.Descriptors != 999 {
		t.Errorf("%d descriptors are left of 1000 with one tree open", g.Descriptors)
	}
	t.Logf("opened, by error number: %v", seen)
}

// TestUnreadable checks that the system's own permissions apply: the server may read less than root.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Skip("root reads everything")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "secret")
	if err := os.Chmod(filepath.Join(dir, "file"), 0); err != nil {
		t.Fatal(err)
	}
	if _, errno := serve(t, dir).Open("geo/file"); errno != acces {
		t.Errorf("got %d, want %d", errno, acces)
	}
	if err := os.Chmod(dir, 0o300); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) }) // so that it can be removed
	if err := files.Check(dir); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("a directory that can't be read: got %v", err)
	}
}
