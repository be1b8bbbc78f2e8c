package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	talkers = 3
	// talksEvery is how long a client waits between two messages, and talks is how many messages a session has before a new one replaces it.
	talksEvery, talks = 30 * time.Millisecond, 400
)

const beginSession = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"chaos","version":"1"}}}`

// Sessions are the sessions of MCP clients with protocol version 2025-11-25. Each message goes to a different server. Sessions continue from one
// fault to the next, and must never be unknown to a server.
type sessions struct {
	*world
	mu    sync.Mutex
	of    [talkers]talker
	begun int
	since *told
}

// A talker is a client.
type talker struct {
	id string
	n  int // messages of the session
}

func (*sessions) name() string { return "answers in sessions, not, sessions begun" }

// load implements trial.
func (s *sessions) load(ctx context.Context, _ fault, l *ledger) {
	s.since = l.kinds["session"]
	var all sync.WaitGroup
	for i := range s.of {
		all.Go(func() {
			asks := &http.Client{Transport: &http.Transport{}}
			defer asks.CloseIdleConnections()
			for ctx.Err() == nil {
				s.talk(context.WithoutCancel(ctx), asks, &s.of[i], l)
				wait(ctx, talksEvery)
			}
		})
	}
	all.Wait()
}

// talk sends one message.
func (s *sessions) talk(ctx context.Context, asks *http.Client, t *talker, l *ledger) {
	header := http.Header{"Accept": {"application/json, text/event-stream"}}
	at := s.balancer.front.URL + "/mcp"
	if t.id == "" || t.n == talks {
		a := send(ctx, asks, at, s.token, beginSession, header)
		l.note("session", a, func(a answer) bool { return a.session != "" })
		if a.session != "" {
			*t = talker{id: a.session}
			s.mu.Lock()
			s.begun++
			s.mu.Unlock()
		}
		return
	}
	t.n++
	header.Set(sessionID, t.id)
	header.Set("Mcp-Protocol-Version", "2025-11-25")
	text := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"chaos-add","arguments":{"a":%d,"b":1000000}}}`, t.n, t.n)
	a := send(ctx, asks, at, s.token, text, header)
	l.note("session", a, func(a answer) bool { return strings.Contains(a.body, fmt.Sprintf(`"text":"%d"`, t.n+1_000_000)) })
}

// verify implements trial.
func (s *sessions) verify(context.Context) (sum string, wrong []string) {
	sum = fmt.Sprintf("%d, %d, %d", s.since.right, s.since.lost+s.since.failed, s.begun)
	s.begun = 0
	return sum, nil // each answer has been judged
}
