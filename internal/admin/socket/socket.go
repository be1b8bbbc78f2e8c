// Package socket has the Unix socket over which a server is administered on its own machine. Who may open it, by its file's owner and mode,
// is an administrator: the system says who that is.
package socket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/ownership"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

// Name is what the socket is called in the directory of the state.
const Name = "admin.sock"

// MaxPath is how many bytes the path of a socket may have.
func MaxPath() int {
	if runtime.GOOS == "linux" {
		return 107
	}
	return 103 // of macOS and the BSDs
}

// CheckPath returns what is wrong with the path of a socket, or nil.
func CheckPath(path string) error {
	if most := MaxPath(); len(path) > most {
		return fmt.Errorf("the path of the admin socket has %d bytes, and this system allows %d: set state.directory or admin.socket to a shorter one: %s", len(path), most, path)
	}
	return nil
}

// The limits of what a caller can prolong or enlarge. Who gets here may end the process anyway, so they are for accidents.
const (
	headerTime = 10 * time.Second
	maxHeader  = 32 << 10 // bytes
	maxConns   = 64
)

// A Server serves the socket.
type Server struct {
	path     string
	listener *net.UnixListener
	http     *http.Server
	served   chan struct{}
	once     sync.Once
	closed   error
}

// Open binds the socket at path, for the user of this process alone, and serves it. What a server that was killed has left there is
// replaced, and what another one serves is not. Handlers know by the context of a request who sent it: see [Peers].
func Open(path string, handler http.Handler, logger *slog.Logger) (*Server, error) {
	listener, err := bind(path)
	if err != nil {
		return nil, err
	}
	s := &Server{path: path, listener: listener, served: make(chan struct{}), http: &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTime,
		MaxHeaderBytes:    maxHeader,
		ConnContext:       withPeer,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),

		DisableGeneralOptionsHandler: true,
	}}
	go func() {
		defer close(s.served)
		if err := s.http.Serve(bounded{listener, make(chan struct{}, maxConns)}); !errors.Is(err, http.ErrServerClosed) {
			logger.Error("the admin socket is closed", "path", path, "error", err)
		}
	}()
	return s, nil
}

// Path returns where the socket is.
func (s *Server) Path() string { return s.path }

// Close ends all requests, and removes the socket. A second Close returns the result of the first.
func (s *Server) Close() error {
	s.once.Do(func() {
		s.closed = s.http.Close() // which removes the file, since this process has made it
		<-s.served
	})
	return s.closed
}

// bind listens at a path.
func bind(path string) (*net.UnixListener, error) {
	if os.Getuid() < 0 {
		return nil, errors.New("open the admin socket: this system doesn't say who opens one: administer the server over HTTP, with [admin] enabled = true")
	}
	if err := CheckPath(path); err != nil {
		return nil, err
	}
	folder, err := filepath.Abs(filepath.Dir(path))
	if err == nil {
		err = ownership.Check(folder)
	}
	if err != nil {
		return nil, fmt.Errorf("open the admin socket: whoever can put another one in its place answers commands as if he were the server: %w; or set admin.socket to a path elsewhere", err)
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	config := net.ListenConfig{Control: closeToOthers}
	l, err := config.Listen(context.Background(), "unix", path)
	if err == nil {
		// Where the system has not made it with this mode, nobody has been let in yet.
		if err = os.Chmod(path, 0o600); err != nil {
			_ = l.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open the admin socket: %w", err)
	}
	return l.(*net.UnixListener), nil
}

// removeStale removes the socket that a server has left at path. Anything else there is an error.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("open the admin socket: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("open the admin socket: %s is there already, and is not a socket: move it away, or set admin.socket to another path", path)
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		_ = conn.Close()
		return fmt.Errorf("open the admin socket: another server has %s: give each a state.directory or an admin.socket of its own", path)
	}
	if !isRefused(err) { // such as a queue that is full, or a file of somebody else
		return fmt.Errorf("open the admin socket: something is at %s, and it is not known whether a server has it: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("open the admin socket: remove what a server has left: %w", err)
	}
	return nil
}

// Of returns where the socket of a server with a configuration is, or "" where it has none.
func Of(c *config.Config) string {
	switch {
	case c.Admin.Socket == config.NoSocket, c.Admin.Socket == "" && c.State.Directory == "":
		return ""
	case c.Admin.Socket != "":
		return c.Admin.Socket
	}
	return filepath.Join(c.State.Directory, Name)
}

// bounded is a listener with a number of connections at most. Others wait in the system.
type bounded struct {
	net.Listener
	places chan struct{}
}

// Accept waits for a place and a connection.
func (b bounded) Accept() (net.Conn, error) {
	b.places <- struct{}{}
	conn, err := b.Listener.Accept()
	if err != nil {
		<-b.places
		return nil, err
	}
	return &placed{Conn: conn, leave: sync.OnceFunc(func() { <-b.places })}, nil
}

// A placed connection gives its place back when it is closed.
type placed struct {
	net.Conn
	leave func()
}

// Close closes the connection.
func (p *placed) Close() error {
	defer p.leave()
	return p.Conn.Close()
}
