package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/tlsfiles"
)

// TLS is below a watched connection, whose first read is the handshake. So an unfinished handshake is treated like an unfinished head: the server
// waits for it, and its bytes are counted.

// openTLS opens the TLS files of a configuration, or returns nil if there are none.
func openTLS(c *config.Config, logger *slog.Logger) (*tlsfiles.Source, error) {
	if c.Server.TLS.Certificate == "" {
		return nil, nil
	}
	return tlsfiles.Open(tlsfiles.Files{Certificate: c.Server.TLS.Certificate, Key: c.Server.TLS.Key, ClientCA: c.Server.TLS.ClientCA}, logger)
}

const (
	// maxHandshake is how many bytes a client may send before it has agreed on TLS: enough for a chain of large certificates.
	maxHandshake = 64 << 10
	// plainAnswer is the answer for clients that speak HTTP without TLS.
	plainAnswer = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n" +
		"400 Bad Request: this address speaks HTTPS"
)

// A secured is the TLS of a watched connection.
type secured struct {
	conn   *tls.Conn
	files  *tlsfiles.Source
	shaken bool  // the handshake is over; used only by the goroutine that reads
	failed error // likewise

	state, nobody *tls.ConnectionState // after the handshake: the TLS state, and a copy without the client's certificate
	number        atomic.Uint64        // the number of the TLS files with which the client's certificate is known to be valid
}

func newSecured(w *watchedConn, files *tlsfiles.Source) *secured {
	return &secured{conn: tls.Server(shaking{w.socket, w}, files.Config()), files: files}
}

// shaking counts the bytes that a client sends during the handshake.
type shaking struct {
	duplex
	w *watchedConn
}

// Read reads, and fails if the client sends too much.
func (s shaking) Read(p []byte) (int, error) {
	n, err := s.duplex.Read(p)
	w := s.w
	if w.tls.shaken {
		return n, err
	}
	w.asked.Store(true)
	w.head.bytes += int64(n)
	switch {
	case w.head.bytes > maxHandshake:
		return 0, errors.New("the handshake is too long")
	case w.head.cost() > headFree && !w.conns.hold(w):
		return 0, errors.New("too many bytes in unfinished handshakes")
	}
	return n, err
}

// shake does the handshake. Package http treats its error as the end of the connection.
func (w *watchedConn) shake() error {
	s := w.tls
	if s.failed != nil {
		return s.failed
	}
	number := s.files.Number()
	if err := s.conn.Handshake(); err != nil {
		s.failed = &net.OpError{Op: "read", Net: "tcp", Err: fmt.Errorf("TLS handshake: %w", err)}
		if plain, ok := errors.AsType[tls.RecordHeaderError](err); ok && plain.Conn != nil && isHTTP(plain.RecordHeader) {
			s.failed = refuseOver(w.socket, plainAnswer)
		} else if isTelling(err) {
			w.conns.tellHandshake(w.RemoteAddr(), err)
		}
		return s.failed
	}
	state := s.conn.ConnectionState()
	nobody := state
	nobody.PeerCertificates, nobody.VerifiedChains = nil, nil
	s.state, s.nobody, s.shaken = &state, &nobody, true
	s.number.Store(number)
	w.conns.shaken(w)
	return nil
}

// isHTTP reports whether the client's first bytes are those of an HTTP request rather than of a TLS record.
func isHTTP(record [5]byte) bool {
	switch string(record[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO", "DELET", "PATCH", "PRI *":
		return true
	}
	return false
}

// isTelling reports whether an operator can learn something from the error of a handshake. Many fail just because the client goes away.
func isTelling(err error) bool {
	op, isOp := errors.AsType[*net.OpError](err)
	return !errors.Is(err, io.EOF) && (!isOp || op.Op == "remote error" || op.Op == "local error")
}

// shaken is called after the handshake, and stops counting its bytes. The head of the first request follows.
func (c *connections) shaken(w *watchedConn) {
	c.mu.Lock()
	w.inHead.leave()
	c.held -= w.head.held
	w.head.held = 0
	c.mu.Unlock()
	w.head = head{awaited: true, read: true}
	w.asked.Store(false)
}

// now returns the TLS state as it is at present, since a connection may last for hours. If the client's certificate has expired, or its
// authority is no longer trusted, the state is without the certificate.
func (s *secured) now() *tls.ConnectionState {
	if len(s.state.PeerCertificates) == 0 {
		return s.state
	}
	leaf, number, now := s.state.PeerCertificates[0], s.files.Number(), time.Now()
	if now.After(leaf.NotAfter) || now.Before(leaf.NotBefore) {
		return s.nobody
	}
	if s.number.Load() != number {
		if !s.files.Vouches(s.state.PeerCertificates, now) {
			return s.nobody
		}
		s.number.Store(number)
	}
	return s.state
}

// tellHandshake logs a failed handshake, at most once a second.
func (c *connections) tellHandshake(client net.Addr, err error) {
	c.mu.Lock()
	now := time.Now()
	due := now.Sub(c.shook) >= closedEvery
	if due {
		c.shook = now
	}
	c.mu.Unlock()
	if due {
		c.logger.Info("a client's TLS handshake failed", "client", client.String(), "error", err)
	}
}
