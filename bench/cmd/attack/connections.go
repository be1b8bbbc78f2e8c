package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/assemble"
	"github.com/toolsrv/toolsrv/bench/internal/service"
)

// The attacks on connections: many clients that send little or nothing, and wait.

const (
	// token is the witness's token, which the besiegers don't have.
	token = "the-witness-has-this-token"
	// witnessed is how long the witness sends requests.
	witnessed = 8 * time.Second
	// rate is how many besiegers connect, or connect again, in a second, to take places and memory. More of them would use up the processor first,
	// which is a different attack.
	rate = 1000
	// prompt is how long an answer to the witness may take at most.
	prompt = 2 * time.Second
)

func attackIdle(ctx context.Context, a *arena) error {
	return a.besiege(ctx, service.Options{Files: 256}, 400, "", true, 0)
}

func attackIdleMany(ctx context.Context, a *arena) error {
	return a.besiege(ctx, service.Options{}, 12_000, "", true, 0)
}

func attackHeads(ctx context.Context, a *arena) error {
	head := "GET /" + strings.Repeat("x", 15<<10) + " HTTP/1.1\r\nHost: localhost\r\n"
	return a.besiegeWithin(ctx, 512<<20, 9_500, head+"A: "+strings.Repeat("x", 31<<10-len(head)), true)
}

func attackHeadLines(ctx context.Context, a *arena) error {
	var head strings.Builder
	head.WriteString("GET / HTTP/1.1\r\nHost: localhost\r\n")
	for i := 0; head.Len() < 31<<10; i++ {
		fmt.Fprintf(&head, "%x:\n", i)
	}
	return a.besiegeWithin(ctx, 512<<20, 9_500, head.String(), true)
}

// attackBodies attacks a server that requires no token.
func attackBodies(ctx context.Context, a *arena) error {
	const size = 65_000
	return a.besiegeWithin(ctx, 512<<20, 9_500, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n{\"a\":\"%s",
		path(0), size, strings.Repeat("x", size-100)), false)
}

// besiegeWithin is besiege for a server with a memory limit, a fifth of which must stay free.
func (a *arena) besiegeWithin(ctx context.Context, memory int64, besiegers int, sends string, withToken bool) error {
	group, err := newCgroup(a.cgroup, memory)
	if err != nil {
		return fmt.Errorf("%w: no cgroup: %w", errSkipped, err)
	}
	a.after = append(a.after, group.remove)
	a.tell("in a cgroup of %d MiB", memory>>20)
	return a.besiege(ctx, service.Options{Cgroup: group.directory}, besiegers, sends, withToken, memory*8/10)
}

// besiege makes many clients connect, send something and wait, and connect again when they are disconnected. Meanwhile a witness sends probes and
// calls.
func (a *arena) besiege(ctx context.Context, o service.Options, besiegers int, sends string, withToken bool, most int64) error {
	if err := a.fill(1, assemble.Tool{}); err != nil {
		return err
	}
	if withToken {
		o.Rest = fmt.Sprintf("[auth]\ntokens = [%q]\n", token)
	}
	s, err := a.start(ctx, o)
	if err != nil {
		return err
	}
	w := &witness{url: s.URL, fresh: &http.Client{Timeout: hang, Transport: &http.Transport{DisableKeepAlives: true}}, kept: &http.Client{Timeout: hang}}
	if withToken {
		w.token = token
	}
	defer w.kept.CloseIdleConnections()
	if err := w.call(ctx, w.kept); err != nil {
		return fmt.Errorf("before the attack: %w", err)
	}
	attack, end := context.WithCancel(ctx)
	var (
		all  sync.WaitGroup
		came atomic.Int64
		in   atomic.Int64
	)
	turn := make(chan struct{})
	all.Go(func() { pace(attack, turn) })
	for range besiegers {
		all.Go(func() {
			for range turn {
				sit(attack, strings.TrimPrefix(s.URL, "http://"), sends, &came, &in)
			}
		})
	}
	for came.Load() < int64(besiegers) && s.Died() == nil && ctx.Err() == nil {
		time.Sleep(100 * time.Millisecond)
	}
	err = w.look(ctx, witnessed)
	a.tell("%d besiegers, %d connections of them made, %d open at the end, %v", besiegers, came.Load(), in.Load(), w)
	end()
	all.Wait()
	return errors.Join(s.Died(), err, a.peak(s, most))
}

// pace lets besiegers connect at a fixed rate, until ctx ends.
func pace(ctx context.Context, turn chan<- struct{}) {
	defer close(turn)
	const step = 20 * time.Millisecond
	for ticker := time.NewTicker(step); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for range rate * step / time.Second {
			select {
			case <-ctx.Done():
				return
			case turn <- struct{}{}:
			default: // all are there
			}
		}
	}
}

// sit connects, sends, and waits until the connection ends.
func sit(ctx context.Context, host, sends string, came, in *atomic.Int64) {
	conn, err := (&net.Dialer{Timeout: hang}).DialContext(ctx, "tcp", host)
	if err != nil {
		return // the server lets nobody in, as the witness will report
	}
	came.Add(1)
	in.Add(1)
	defer in.Add(-1)
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	defer conn.Close()
	if _, err := io.WriteString(conn, sends); err != nil {
		return
	}
	_, _ = conn.Read(make([]byte, 1))
}

// A witness is a client with real requests.
type witness struct {
	url, token  string
	fresh, kept *http.Client // a client with a new connection for each request, and one that keeps its connection

	asked int
	worst time.Duration
}

// look sends requests for a while, and returns what went wrong.
func (w *witness) look(ctx context.Context, long time.Duration) error {
	var errs []error
	for begun := time.Now(); time.Since(begun) < long && len(errs) < 5 && ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		for _, ask := range []struct {
			name string
			how  func() error
		}{
			{"/healthz", func() error { return w.probe(ctx) }},
			{"a call", func() error { return w.call(ctx, w.fresh) }},
			{"a call over an existing connection", func() error { return w.call(ctx, w.kept) }},
		} {
			asked := time.Now()
			err := ask.how()
			took := time.Since(asked)
			w.asked++
			w.worst = max(w.worst, took)
			if err == nil && took > prompt {
				err = fmt.Errorf("took %v", took)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("%s, %.1f s after the beginning: %w", ask.name, asked.Sub(begun).Seconds(), err))
			}
		}
	}
	return errors.Join(errs...)
}

func (w *witness) probe(ctx context.Context) error {
	return w.do(ctx, w.fresh, http.MethodGet, "/healthz", "", `{"status":"ok"}`)
}

// call calls a tool. If there are no tokens, it may have to try again, since the server can't tell the witness from the others.
func (w *witness) call(ctx context.Context, client *http.Client) error {
	const body = `{"a":1}`
	begun := time.Now()
	for {
		err := w.do(ctx, client, http.MethodPost, path(0), body, body)
		turnedAway := errors.Is(err, errBusy) || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
		if w.token != "" || !turnedAway || time.Since(begun) > prompt {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

var errBusy = errors.New("503 Service Unavailable")

func (w *witness) do(ctx context.Context, client *http.Client, method, path, body, want string) error {
	r, err := http.NewRequestWithContext(ctx, method, w.url+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	if w.token != "" {
		r.Header.Set("Authorization", "Bearer "+w.token)
	}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return err
	case answer.StatusCode == http.StatusServiceUnavailable:
		return errBusy
	case answer.StatusCode != http.StatusOK || string(text) != want:
		return fmt.Errorf("%s: %.200s", answer.Status, text)
	}
	return nil
}

// String returns the text for the attack's line.
func (w *witness) String() string {
	return fmt.Sprintf("%d requests of the witness, the longest %.2f s", w.asked, w.worst.Seconds())
}
