// Package socket has the Unix socket over which a server is administered on its own machine. Every user who may open it, by its file's owner and
// mode, is an administrator. The system says who the user is.
package socket

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/listen"
	"github.com/toolsrv/toolsrv/internal/ownership"
)

// Name is the name of the socket in the directory of the state.
const Name = "admin.sock"

// CheckPath returns an error if a socket can't have this path.
func CheckPath(path string) error {
	if len(path) > listen.MaxPath {
		return fmt.Errorf("the path of the admin socket has %d bytes, and this system allows %d: set state.directory or admin.socket to a shorter one: %s", len(path), listen.MaxPath, path)
	}
	return nil
}

// These limits protect only against accidents: whoever can open the socket may end the process anyway.
const (
	headerTime = 10 * time.Second
	maxHeader  = 32 << 10 // bytes
	maxConns   = 64
)

// A Server serves the socket.
type Server struct {
	path   string
	http   *http.Server
	served chan struct{}
	once   sync.Once
	closed error
}

// Open binds the socket at path, for the user of this process alone, and serves it. A socket left behind by a killed server is replaced,
// but not one that another server is using. The context of a request says who sent it: see [Peers].
func Open(path string, handler http.Handler, logger *slog.Logger) (*Server, error) {
	listener, err := bind(path)
	if err != nil {
		return nil, err
	}
	s := &Server{path: path, served: make(chan struct{}), http: &http.Server{
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

// Try returns why a server can't have its socket at path, or nil. It must not be called while one has.
func Try(path string) error {
	l, err := bind(path)
	if err != nil {
		return err
	}
	return l.Close()
}

// Path returns the path of the socket.
func (s *Server) Path() string { return s.path }

// Close ends all requests, and removes the socket. A second Close returns the result of the first.
func (s *Server) Close() error {
	s.once.Do(func() {
		s.closed = s.http.Close() // this removes the file
		<-s.served
	})
	return s.closed
}

// bind listens at a path.
func bind(path string) (net.Listener, error) {
	if os.Getuid() < 0 {
		return nil, errors.New("open the admin socket: this system doesn't say who connects: administer the server over HTTP, with [admin] enabled = true")
	}
	if err := CheckPath(path); err != nil {
		return nil, err
	}
	folder, err := filepath.Abs(filepath.Dir(path))
	if err == nil {
		err = ownership.Check(folder)
	}
	if err != nil {
		return nil, fmt.Errorf("open the admin socket: anyone who can replace it can answer commands in the server's place: %w; or set admin.socket to another path", err)
	}
	l, remedy, err := listen.Socket(context.Background(), path, 0o600, "state.directory or admin.socket")
	if err != nil {
		return nil, fmt.Errorf("open the admin socket %s: %w; %s", path, err, remedy)
	}
	return l, nil
}

// Of returns the path of the socket of a server with a configuration, or "" if it has none.
func Of(c *config.Config) string {
	switch {
	case c.Admin.Socket == config.NoSocket, c.Admin.Socket == "" && c.State.Directory == "":
		return ""
	case c.Admin.Socket != "":
		return c.Admin.Socket
	}
	return filepath.Join(c.State.Directory, Name)
}

// bounded is a listener with a maximum number of connections. Further ones wait in the system's queue.
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

// A placed is a connection that gives its place back when it is closed.
type placed struct {
	net.Conn
	leave func()
}

// Close closes the connection.
func (p *placed) Close() error {
	defer p.leave()
	return p.Conn.Close()
}
