package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/service"
)

// controlCommand makes this program a server without a sandbox, in which a goroutine computes forever while a client is connected. The time that this
// server takes to notice a closed connection is the machine's share.
const controlCommand = "control"

// control writes the time at which each computation ends.
func control(l net.Listener) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		var closed atomic.Bool
		ended := make(chan time.Time, 1)
		go func() {
			for n := 0; !closed.Load(); n++ {
			}
			ended <- time.Now()
		}()
		_, _ = io.Copy(io.Discard, c) // returns when the other side has closed the connection
		closed.Store(true)
		c.Close()
		fmt.Fprintln(os.Stdout, (<-ended).Format(time.RFC3339Nano))
	}
}

// controlled measures the same as cancel does.
func controlled(p *service.Peer, calls int) ([]time.Duration, error) {
	took := make([]time.Duration, calls)
	lines := bufio.NewScanner(p.Out)
	lines.Scan() // the line about the connection that service.StartPeer made to check that the program listens
	for i := range took {
		c, err := net.Dial("tcp", p.Host)
		if err != nil {
			return nil, err
		}
		time.Sleep(beforeClosing)
		closed := time.Now()
		if err := c.Close(); err != nil {
			return nil, err
		}
		if !lines.Scan() {
			return nil, io.ErrUnexpectedEOF
		}
		end, err := time.Parse(time.RFC3339Nano, lines.Text())
		if err != nil {
			return nil, err
		}
		took[i] = end.Sub(closed)
	}
	return took, nil
}
