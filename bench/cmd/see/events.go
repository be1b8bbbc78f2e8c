package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/measure"
	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/client"
	"github.com/toolsrv/toolsrv/internal/admin/socket"
)

const (
	listeners = 10_000
	// addresses is how many addresses the listeners connect from: one caller may not have all the streams.
	addresses = 20
	changes   = 10
	// between is the time between two changes, in which listeners are sent nothing.
	between = time.Second
)

// fanout measures the time from a command that switches a tool until nearly all of many listeners have got the event.
func fanout(ctx context.Context, b *bench) (err error) {
	s, err := b.serve(ctx, "[state]\ndirectory = 'state'", b.guests.FillSmall)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	over, err := client.OverSocket(filepath.Join(s.Directory, "state", socket.Name))
	if err != nil {
		return err
	}
	defer over.Close()
	heard := make(chan time.Time, listeners)
	leave, err := listen(ctx, s.Host(), heard)
	if err != nil {
		return err
	}
	defer leave()
	var took []time.Duration
	for n := range changes {
		began := time.Now()
		if n%2 == 0 {
			_, err = over.Do(ctx, "disable", admin.Switched{Names: []string{"bench/add"}}, "")
		} else {
			_, err = over.Do(ctx, "enable", admin.Switched{Names: []string{"bench/add"}}, "")
		}
		if err != nil {
			return err
		}
		limit := time.After(time.Minute)
		for i := range listeners {
			select {
			case at := <-heard:
				took = append(took, at.Sub(began))
			case <-limit:
				return fmt.Errorf("after a minute, %d of %d listeners have heard of change %d", i, listeners, n+1)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		time.Sleep(between)
	}
	b.report.Explain("events_fanout_ms: half of %d listeners hear of a change after %s", listeners, measure.Percentile(took, 0.5).Round(time.Millisecond))
	b.report.Figure("events_fanout_ms", float64(measure.Percentile(took, 0.99).Microseconds())/1000)
	return nil
}

// listen opens the streams. Each listener sends to heard when it gets the event of a switch.
func listen(ctx context.Context, host string, heard chan<- time.Time) (leave func(), err error) {
	var all []net.Conn
	var reading sync.WaitGroup
	leave = func() {
		for _, conn := range all {
			_ = conn.Close() // the connection was only read from
		}
		reading.Wait()
	}
	begun := make(chan error, listeners)
	for i := range listeners {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i%addresses))}, Timeout: 10 * time.Second}
		conn, err := d.DialContext(ctx, "tcp", host)
		if err != nil {
			leave()
			return nil, err
		}
		all = append(all, conn)
		if _, err := fmt.Fprintf(conn, "GET /events HTTP/1.1\r\nHost: %s\r\n\r\n", host); err != nil {
			leave()
			return nil, err
		}
		reading.Go(func() { follow(conn, begun, heard) })
	}
	for range listeners {
		if err = errors.Join(err, <-begun); err != nil {
			leave()
			return nil, err
		}
	}
	return leave, nil
}

// follow reads a stream until its connection is closed.
func follow(conn net.Conn, begun chan<- error, heard chan<- time.Time) {
	lines := bufio.NewReaderSize(conn, 1<<10)
	waits := true
	for {
		line, err := lines.ReadString('\n')
		switch {
		case err != nil:
			if waits {
				begun <- fmt.Errorf("listen: %w", err)
			}
			return
		case waits && strings.HasPrefix(line, "HTTP/1.1 ") && !strings.HasPrefix(line, "HTTP/1.1 200 "):
			begun <- fmt.Errorf("listen: %s", strings.TrimSpace(line))
			return
		case waits && strings.HasPrefix(line, "id: "):
			waits = false
			begun <- nil
		case strings.HasPrefix(line, "event: tool.switched"):
			heard <- time.Now()
		}
	}
}
