package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"
)

// Headers of the balancer's answers: the server that has answered, or on which the call was lost.
const (
	answeredBy = "X-Answered-By"
	lostOn     = "X-Lost-On"
	sessionID  = "Mcp-Session-Id"
)

// passed are the headers of calls that are passed on.
var passed = []string{"Content-Type", "Authorization", "Accept", sessionID, "Mcp-Protocol-Version"}

// How the balancer asks servers whether they accept calls.
const (
	askEvery = 200 * time.Millisecond
	askLimit = time.Second
)

// A balancer passes calls on to the servers that take calls, in turn. A call that did not reach a server is passed on to the next one. A call that
// may have reached a server is not, since the tool may have run.
type balancer struct {
	backends []*backend
	next     atomic.Uint64
	front    *httptest.Server
	stop     context.CancelFunc
	asking   sync.WaitGroup
	through  http.Transport
}

// A backend is a server. Its address may change when it is started again.
type backend struct {
	name    string
	url     atomic.Pointer[string]
	ready   atomic.Bool
	leaving atomic.Bool // it must get no more calls
	running atomic.Int64
}

func newBalancer(names ...string) *balancer {
	ctx, stop := context.WithCancel(context.Background())
	b := &balancer{stop: stop, through: http.Transport{MaxIdleConnsPerHost: 100}}
	for _, name := range names {
		one := &backend{name: name}
		b.backends = append(b.backends, one)
		b.asking.Go(func() { one.watch(ctx) })
	}
	b.front = httptest.NewServer(b)
	return b
}

func (b *balancer) close() {
	b.stop()
	b.asking.Wait()
	b.front.Close()
	b.through.CloseIdleConnections()
}

// set says where a server is.
func (b *backend) set(url string) { b.url.Store(&url) }

// watch asks the server again and again whether it takes calls.
func (b *backend) watch(ctx context.Context) {
	asks := http.Client{Timeout: askLimit}
	defer asks.CloseIdleConnections()
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		if url := b.url.Load(); url != nil {
			answer, err := asks.Get(*url + "/readyz")
			if err == nil {
				_, _ = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
			}
			b.ready.Store(err == nil && answer.StatusCode == http.StatusOK)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// drain stops passing calls on to a server, and returns when none of its calls run any more.
func (b *backend) drain(ctx context.Context) error {
	b.leaving.Store(true)
	for b.running.Load() > 0 {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return
	}
	first := b.next.Add(1)
	for i := range b.backends {
		to := b.backends[(first+uint64(i))%uint64(len(b.backends))]
		to.running.Add(1)
		if !to.ready.Load() || to.leaving.Load() {
			to.running.Add(-1)
			continue
		}
		again := b.pass(w, r, to, body)
		to.running.Add(-1)
		if !again {
			return
		}
	}
	http.Error(w, "no server takes calls", http.StatusServiceUnavailable)
}

// pass passes a call on to a server, and reports whether to try another one because this one was not reached.
func (b *balancer) pass(w http.ResponseWriter, r *http.Request, to *backend, body []byte) (again bool) {
	q, err := http.NewRequestWithContext(r.Context(), r.Method, *to.url.Load()+r.URL.Path, bytes.NewReader(body))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return false
	}
	for _, name := range passed {
		if value := r.Header.Get(name); value != "" {
			q.Header.Set(name, value)
		}
	}
	answer, err := b.through.RoundTrip(q)
	var text []byte
	if err == nil {
		text, err = io.ReadAll(answer.Body)
		answer.Body.Close()
	}
	if err != nil {
		if failed, ok := errors.AsType[*net.OpError](err); ok && failed.Op == "dial" {
			to.ready.Store(false)
			return true
		}
		w.Header().Set(lostOn, to.name)
		http.Error(w, err.Error(), http.StatusBadGateway)
		return false
	}
	w.Header().Set(answeredBy, to.name)
	if id := answer.Header.Get(sessionID); id != "" {
		w.Header().Set(sessionID, id)
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = w.Write(text) // it does not matter if the caller has gone
	return false
}
