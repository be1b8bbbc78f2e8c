package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
)

// How many calls wait, and how many calls a neighbour makes meanwhile.
const (
	waitingCalls   = 2000
	neighbourCalls = 20_000
)

// waiting measures how much memory calls hold while they wait for a server, and how long calls of another tool take meanwhile.
func (b *bench) waiting(ctx context.Context) (err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &silent{listener: listener, asked: make(chan struct{}, waitingCalls)}
	var serving sync.WaitGroup
	serving.Go(server.serve)
	defer func() {
		err = errors.Join(err, listener.Close())
		server.answer()
		serving.Wait()
	}()
	port := listener.Addr().(*net.TCPAddr).Port
	s, err := b.service(ctx, port, fmt.Sprintf("[[grant]]\nmatch = 'reach/*'\nhttp = ['http://127.0.0.1:%d']\nprivate = ['127.0.0.1/32']\nhttp_timeout = '5m'\nkv = '1MiB'\ntools = ['bench/add']\n", port))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	neighbour := func() error { return s.call(ctx, "/bench/add", guest.Input, guest.Output) }
	alone, err := p99(neighbour)
	if err != nil {
		return err
	}
	before, err := measure.Resident()
	if err != nil {
		return err
	}
	ended := make(chan error, waitingCalls)
	for range waitingCalls {
		go func() {
			ended <- s.call(ctx, "/reach/fetch", fmt.Sprintf(`{"url":"http://127.0.0.1:%d/"}`, port), "{}")
		}()
	}
	for range waitingCalls {
		select {
		case <-server.asked:
		case err := <-ended:
			return fmt.Errorf("a call has ended before all waited: %w", err)
		}
	}
	after, err := measure.Resident()
	if err != nil {
		return err
	}
	beside, err := p99(neighbour)
	if err != nil {
		return err
	}
	each := float64(after-before) / waitingCalls / 1024
	b.report.Explain("%d calls that wait for a server take %.0f KiB each, the server's connection and the pages that the guest wrote included; a neighbour's p99 beside them: %v, alone: %v",
		waitingCalls, each, beside, alone)
	b.report.Figure("waiting_kib", each)
	b.report.Figure("waiting_neighbour_p99_ms", float64(beside)/1e6)
	server.answer()
	for range waitingCalls {
		err = errors.Join(err, <-ended)
	}
	return err
}

// p99 calls a tool many times, one after the other.
func p99(call func() error) (time.Duration, error) {
	times := make([]time.Duration, neighbourCalls)
	for i := range times {
		begin := time.Now()
		if err := call(); err != nil {
			return 0, err
		}
		times[i] = time.Since(begin)
	}
	return measure.Percentile(times, 99), nil
}

// A silent server reads requests, and answers none until answer is called.
type silent struct {
	listener net.Listener
	asked    chan struct{} // has a value for each request

	mu          sync.Mutex
	connections []net.Conn
	answered    bool // all requests are answered from now on
}

func (s *silent) serve() {
	var request [4 << 10]byte
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		if _, err := conn.Read(request[:]); err != nil {
			_ = conn.Close()
			continue
		}
		s.mu.Lock()
		s.connections = append(s.connections, conn)
		answered := s.answered
		s.mu.Unlock()
		if answered { // the request was sent again because its connection broke
			s.answer()
			continue
		}
		s.asked <- struct{}{}
	}
}

// answer answers all requests so far.
func (s *silent) answer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, conn := range s.connections {
		_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"))
		_ = conn.Close()
	}
	s.connections, s.answered = nil, true
}
