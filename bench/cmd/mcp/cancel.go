package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
	"github.com/toolsrv/toolsrv/bench/internal/service"
)

// beforeClosing is how long a call runs before its connection is closed: long enough that the guest surely computes, since nothing shows when it
// begins.
const beforeClosing = 20 * time.Millisecond

// cancel measures how long a guest that computes forever continues after its caller has closed the connection. The end is the time in the server's
// log line for the request, by the same clock.
func (b *bench) cancel(ctx context.Context) (err error) {
	const calls = 200
	type line struct {
		Time            time.Time
		Msg, Path, Code string
	}
	ends := make(chan line, calls)
	s, err := b.serve(ctx, "[limits]\ntimeout = \"1m\"\n", func(text []byte) {
		var l line
		if json.Unmarshal(text, &l) == nil && l.Msg == "request" && l.Path == "/mcp" {
			ends <- l
		}
	}, func(tools string) error {
		odd, err := b.guests.Read(guest.Odd)
		if err != nil {
			return err
		}
		if odd, err = guest.Describe(odd, `{"type":"object"}`, "grow", "trap", "spin"); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(tools, "odd.wasm"), odd, 0o600)
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	call := request(s.Host(), "/mcp", "tools/call", "bench-spin", `"name":"bench-spin"`)
	took := make([]time.Duration, calls)
	for i := range took {
		c, err := net.Dial("tcp", s.Host())
		if err != nil {
			return err
		}
		if _, err := c.Write(call); err != nil {
			return err
		}
		time.Sleep(beforeClosing)
		closed := time.Now()
		if err := c.Close(); err != nil {
			return err
		}
		select {
		case l := <-ends:
			if l.Code != "cancelled" {
				return fmt.Errorf("the call ended with %q, want cancelled", l.Code)
			}
			took[i] = l.Time.Sub(closed)
		case <-time.After(10 * time.Second):
			return fmt.Errorf("call %d did not end", i)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	half, p99 := measure.Percentile(took, 50), measure.Percentile(took, 99)
	b.report.Explain("%d calls of a guest that computes forever: from closing the connection to the end of the call %v at the median, %v at the 99th percentile", calls, half, p99)
	b.report.Figure("mcp_cancel_ms", p99.Seconds()*1e3)
	return b.plainCancel(ctx, calls)
}

// plainCancel measures the same for a Go program without a sandbox: on a busy machine, most of the time is spent waiting for a processor.
func (b *bench) plainCancel(ctx context.Context, calls int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	plain, err := service.StartPeer(ctx, self, controlCommand)
	if err != nil {
		return err
	}
	defer plain.Stop()
	took, err := controlled(plain, calls)
	if err != nil {
		return err
	}
	half, p99 := measure.Percentile(took, 50), measure.Percentile(took, 99)
	b.report.Explain("a goroutine that computes forever, in a plain Go server: %v at the median, %v at the 99th percentile", half, p99)
	b.report.Figure("plain_cancel_ms", p99.Seconds()*1e3)
	return nil
}
