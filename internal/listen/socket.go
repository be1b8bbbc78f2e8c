package listen

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/toolsrv/toolsrv/internal/text"
)

// Unix is the prefix of the address of a socket in the file system; the path follows.
const Unix = "unix:"

const (
	// socketMode lets the socket's owner and its group connect. A proxy, for example, may be in that group.
	socketMode = 0o660
	// MaxPath is how many bytes the path of a socket can have on this system.
	MaxPath = len(syscall.RawSockaddrUnix{}.Path) - 1
	// answerTime is how long a program that holds the socket may take to accept a connection.
	answerTime = time.Second
)

// A socket is a listener with a file. Close removes the file, unless it belongs to another listener by then.
type socket struct {
	*net.UnixListener
	path string
	made fs.FileInfo
	kept atomic.Bool
}

// Keep leaves a listener's file in place when the listener is closed, because another process goes on using it.
func Keep(l net.Listener) {
	if s, ok := l.(*socket); ok {
		s.kept.Store(true)
	}
}

// Adopt returns a listener that another process has made and kept. If the listener has a file, Close removes it.
func Adopt(l net.Listener) net.Listener {
	u, ok := l.(*net.UnixListener)
	if !ok {
		return l
	}
	path := u.Addr().String()
	made, err := os.Lstat(path)
	if err != nil {
		return l // the file has been removed
	}
	u.SetUnlinkOnClose(false)
	return &socket{UnixListener: u, path: path, made: made}
}

// Close removes the file, and closes the listener.
func (s *socket) Close() error {
	if !s.kept.Load() && s.isOurs() {
		_ = os.Remove(s.path) // a file that stays is removed by the next process that listens there
	}
	return s.UnixListener.Close()
}

func (s *socket) isOurs() bool {
	now, err := os.Lstat(s.path)
	return err == nil && os.SameFile(now, s.made)
}

// setting is the configuration key for the server's address.
const setting = "server.address or --address"

func onSocket(ctx context.Context, path string) (net.Listener, error) {
	failed := func(err error, remedy string) error {
		return fmt.Errorf("listen on %s%s: %w; %s", Unix, text.Short(path), cause(err), remedy)
	}
	if len(path) > MaxPath {
		return nil, failed(fmt.Errorf("the path has %d bytes; a socket's can have at most %d", len(path), MaxPath), "set server.address to a shorter one, such as unix:/run/toolsrv/http.sock")
	}
	l, remedy, err := Socket(ctx, path, socketMode, setting)
	if err != nil {
		return nil, failed(err, remedy)
	}
	return l, nil
}

// Socket returns a listener on the socket at path, whose file has its mode from the first moment. A file that a killed program has left there is
// replaced. After an error, remedy says what to do; setting names the setting of the path.
func Socket(ctx context.Context, path string, mode fs.FileMode, setting string) (l net.Listener, remedy string, err error) {
	elsewhere := "set " + setting + " to a path where the server can make a socket"
	if remedy, err := takeStale(ctx, path, setting); err != nil {
		return nil, remedy, err
	}
	c := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error { return raw.Control(closeToOthers) }}
	made, err := c.Listen(ctx, "unix", path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			elsewhere = "make its folder, or have systemd make it with RuntimeDirectory="
		}
		return nil, elsewhere, err
	}
	u, _ := made.(*net.UnixListener)
	u.SetUnlinkOnClose(false)
	s := &socket{UnixListener: u, path: path}
	if err := os.Chmod(path, mode); err != nil {
		return nil, elsewhere, errors.Join(err, s.UnixListener.Close())
	}
	if s.made, err = os.Lstat(path); err != nil {
		return nil, "another program has removed it: start the server again", errors.Join(err, s.UnixListener.Close())
	}
	return s, "", nil
}

// takeStale removes a socket that no program listens on any more, such as after a crash. Any other file is an error.
func takeStale(ctx context.Context, path, setting string) (remedy string, err error) {
	file, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "set " + setting + " to a path that the server can access", err
	case file.Mode().Type() != fs.ModeSocket:
		return "remove it, or set " + setting + " to another path", errors.New("a file that is not a socket is in the way")
	}
	d := net.Dialer{Timeout: answerTime}
	conn, err := d.DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		_ = conn.Close()
		fallthrough
	case !errors.Is(err, syscall.ECONNREFUSED): // the error may mean a full queue, or another user's file
		return "another program may be listening there: stop it, or set " + setting + " to another path", errors.Join(syscall.EADDRINUSE, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "remove this socket, which nobody is listening on", err
	}
	return "", nil
}
