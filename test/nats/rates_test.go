package nats_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	client "github.com/nats-io/nats.go"

	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/nats"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// begun makes calls to three services at some rates, one rate for each, and returns how many calls per second they
// let through together.
func begun(t *testing.T, all []*core.Service, call *wasmtools.Call, seconds int, asked ...int) float64 {
	t.Helper()
	var made atomic.Int64
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(seconds)*time.Second)
	defer cancel()
	began := time.Now()
	var asking sync.WaitGroup
	for i, s := range all {
		asking.Go(func() {
			tick := time.NewTicker(5 * time.Millisecond)
			defer tick.Stop()
			for due, last := 0.0, time.Now(); ; {
				select {
				case <-ctx.Done():
					return
				case now := <-tick.C:
					due += float64(asked[i]) * now.Sub(last).Seconds()
					last = now
				}
				for ; due >= 1; due-- {
					if ticket, err := s.Rates.Begin(call); err == nil {
						made.Add(1)
						ticket.End()
					}
				}
			}
		})
	}
	asking.Wait()
	return float64(made.Load()) / time.Since(began).Seconds()
}

// TestRatesOfAll lets a principal call three services with one state: together they let through its rate, however the calls are distributed and
// whatever strangers send meanwhile. A service that is cut off applies the whole rate by itself.
func TestRatesOfAll(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	const rate = 200
	c := start(t, 1, nil) // a client that is cut off from one of several nodes uses another
	gate := newGate(t, c)
	all := []*core.Service{serve(t, gate.url()), serve(t, c.url()), serve(t, c.url())}
	p, err := wasmtools.NewPrincipal("ci", wasmtools.OriginToken, "*")
	if err != nil {
		t.Fatal(err)
	}
	call := &wasmtools.Call{Principal: p.WithRate(wasmtools.Rate{Calls: rate, Period: time.Second}, nil)}
	check := func(when string, want float64, asked ...int) {
		t.Helper()
		begun(t, all, call, 2, 5*rate, 5*rate, 5*rate) // the burst
		got := begun(t, all, call, 5, asked...)
		t.Logf("%s: %.1f calls/s of %v", when, got, want)
		if got < 0.9*want || got > 1.1*want {
			t.Errorf("%s: %.1f calls/s, want %v", when, got, want)
		}
	}
	check("evenly", rate, rate, rate, rate)
	check("unevenly", rate, 3*rate, rate/2, rate/20)
	check("one only", rate, 0, 0, 2*rate)

	gate.shut()
	time.Sleep(2 * time.Second)
	check("one service is cut off", 2*rate, 2*rate, 2*rate, 2*rate)
	gate.open()
	eventually(t, "it is back", func() bool { return all[0].State.CutOff() == nil })
	time.Sleep(2 * time.Second)

	stranger, err := client.Connect(c.url())
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	quiet := make(chan struct{})
	var strangers sync.WaitGroup
	strangers.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-quiet:
				return
			case <-time.After(10 * time.Millisecond):
			}
			for _, m := range []string{"", "\x01", strings.Repeat("\xff", 1000), strings.Repeat("\x01", 500_000), fmt.Sprintf("\x01%08d\x05other\x05token\x00\x80\x80\x01\x80\x80\x01", i%10_000_000)} {
				_ = stranger.Publish("toolsrv.toolsrv.rates", []byte(m))
				_ = stranger.Publish("toolsrv.another.rates", []byte(m))
				_ = stranger.Publish("toolsrv.toolsrv.sessions-ended", []byte(m))
			}
		}
	})
	check("while strangers talk", rate, rate, rate, rate)
	close(quiet)
	strangers.Wait()
}

// TestPeers sends a message to all processes of a state, and to no other process.
func TestPeers(t *testing.T) {
	t.Parallel()
	c := start(t, 3, nil)
	open := func(prefix string) *nats.Store {
		s, err := nats.Open(t.Context(), nats.Options{URL: c.url(), Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	one, two, other := open("toolsrv"), open("toolsrv"), open("another")
	var mu sync.Mutex
	heard := map[string]string{}
	for name, s := range map[string]state.Peers{"one": one, "two": two, "other": other} {
		stop := s.Hear("topic", func(m []byte) {
			mu.Lock()
			defer mu.Unlock()
			heard[name] += string(m) + ","
		})
		t.Cleanup(stop)
	}
	has := func(want string) bool {
		mu.Lock()
		defer mu.Unlock()
		return strings.Contains(heard["one"], want) && strings.Contains(heard["two"], want)
	}
	eventually(t, "both hear", func() bool { one.Tell("topic", []byte("begin")); return has("begin") })
	two.Tell("another-topic", []byte("wrong"))
	two.Tell("topic", bytes.Repeat([]byte("x"), state.MaxTold+1))
	other.Tell("another-topic", []byte("wrong"))
	two.Tell("topic", []byte("end"))
	eventually(t, "both hear", func() bool { return has("end") })
	mu.Lock()
	defer mu.Unlock()
	if strings.Contains(heard["one"]+heard["two"], "wrong") || strings.Contains(heard["one"], "x") || heard["other"] != "" {
		t.Errorf("heard %q", heard)
	}
}

// TestPeersStop ends subscriptions in every order, also while many messages arrive, and before there is a connection.
func TestPeersStop(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	for round := range 10 {
		s, err := nats.Open(t.Context(), nats.Options{URL: c.url(), Prefix: "toolsrv"})
		if err != nil {
			t.Fatal(err)
		}
		var after atomic.Bool
		stop := s.Hear("topic", func([]byte) {
			if after.Load() {
				t.Error("a message arrives after the end")
			}
		})
		for range 2000 {
			s.Tell("topic", []byte("x"))
		}
		if round%2 == 0 {
			_ = s.Close()
		}
		stop()
		after.Store(true)
		s.Tell("topic", []byte("y"))
		stop()
		_ = s.Close()
	}
	s := nats.Begin(nats.Options{URL: "nats://127.0.0.1:1", Prefix: "toolsrv"})
	stop := s.Hear("topic", func([]byte) {})
	s.Tell("topic", nil)
	stop()
	never := s.Hear("topic", func([]byte) {})
	_ = s.Close()
	never()
}

// TestPeersDenied opens a state whose user may not send messages to other servers: everything else works, and the log says so once.
func TestPeersDenied(t *testing.T) {
	t.Parallel()
	c := start(t, 1, func(o *server.Options) {
		o.Users = []*server.User{{Username: "u", Password: "p", Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: []string{"$KV.toolsrv.>", "$JS.API.>"}},
			Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
		}}}
	})
	var log lockedBuffer
	s, err := nats.Open(t.Context(), nats.Options{URL: strings.Replace(c.url(), "nats://", "nats://u:p@", 1), Prefix: "toolsrv", Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	defer s.Hear("topic", func([]byte) { t.Error("it was heard") })()
	for range 5 {
		s.Tell("topic", nil)
	}
	eventually(t, "the log says so", func() bool { return strings.Contains(log.String(), "doesn't let servers hear each other") })
	if _, err := s.Space("a").Set(t.Context(), "key", nil, state.Any, state.SetOptions{}); err != nil {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "doesn't let servers"); n != 1 {
		t.Errorf("%d times in %s", n, log.String())
	}
}

// A lockedBuffer can be read while it is written.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
