package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	workers = 6
	// rest is how long a worker waits between two calls.
	rest = 4 * time.Millisecond
	// patience is how long a worker waits for an answer before it makes the next call.
	patience = 500 * time.Millisecond
	// callLimit is how long a call may take: longer than a fault stops a server.
	callLimit = time.Minute
	counter   = "counter"
)

// A ledger has the answers that callers got during one fault.
type ledger struct {
	mu      sync.Mutex
	kinds   map[string]*told
	killed  []death
	lost    []loss
	late    time.Duration // the time of the slowest call
	slow    []time.Duration
	put     map[string]bool // keys whose writes were confirmed
	counted []counted
	maybe   int // requests to count that got no answer: they may have been counted
	wrong   []string
}

// told counts the answers to one kind of call.
type told struct{ right, refused, lost, failed int }

// A death is the time at which a server was killed, and a loss is a call without an answer.
type (
	death struct {
		name string
		at   time.Time
	}
	loss struct {
		kind, name, why string
		from, to        time.Time
	}
	counted struct {
		from, to time.Time
		n        int
	}
)

func newLedger() *ledger {
	return &ledger{kinds: map[string]*told{"plain": {}, "write": {}, "session": {}}, put: map[string]bool{}}
}

func (l *ledger) wrongly(format string, arguments ...any) {
	if len(l.wrong) < 20 {
		l.wrong = append(l.wrong, fmt.Sprintf(format, arguments...))
	}
}

// kill records that a server is killed now.
func (l *ledger) kill(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.killed = append(l.killed, death{name, time.Now()})
}

// excused reports whether a lost call was in flight on a server when the server was killed.
func (l *ledger) excused(of loss) bool {
	return slices.ContainsFunc(l.killed, func(d death) bool {
		return d.name == of.name && !d.at.Before(of.from.Add(-askLimit-askEvery)) && !d.at.After(of.to)
	})
}

// An answer is the answer to a call.
type answer struct {
	status   int
	body     string
	by, lost string
	session  string // the MCP session that has begun
	from, to time.Time
	err      error
}

// call calls a tool of the namespace chaos at an address.
func call(ctx context.Context, asks *http.Client, url, token, tool string, arguments any) answer {
	return callPath(ctx, asks, url+"/chaos/"+tool, token, arguments)
}

// callPath calls the tool at an address.
func callPath(ctx context.Context, asks *http.Client, at, token string, arguments any) answer {
	text, err := json.Marshal(arguments)
	if err != nil {
		return answer{err: err}
	}
	return send(ctx, asks, at, token, string(text), nil)
}

// send sends a message.
func send(ctx context.Context, asks *http.Client, at, token, text string, header http.Header) (a answer) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(text))
	if err != nil {
		return answer{err: err}
	}
	maps.Copy(q.Header, header)
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Authorization", "Bearer "+token)
	a.from = time.Now()
	got, err := asks.Do(q)
	if err != nil {
		a.to, a.err = time.Now(), err
		return a
	}
	body, err := io.ReadAll(got.Body)
	a.err = errors.Join(err, got.Body.Close())
	a.to, a.status, a.body, a.by, a.lost = time.Now(), got.StatusCode, strings.TrimSpace(string(body)), got.Header.Get(answeredBy), got.Header.Get(lostOn)
	a.session = got.Header.Get(sessionID)
	return a
}

// refused reports whether a tool was told that it can't write, or got no answer within its time limit.
func (a *answer) refused() bool {
	return strings.Contains(a.body, `"unavailable"`) || strings.Contains(a.body, `"tool_timeout"`)
}

// Callers call tools through the balancer, and record the answers in a ledger.
type callers struct {
	url, token string
	ledger     *ledger
	prefix     string // of their keys
}

// work calls tools until ctx ends, and returns when all calls are answered. It makes the next call without waiting for a slow one, so that a server
// that hangs does not hold up all callers.
func (c *callers) work(ctx context.Context, number int) {
	asks := &http.Client{Transport: &http.Transport{}}
	defer asks.CloseIdleConnections()
	var all sync.WaitGroup
	defer all.Wait()
	for n := 0; ctx.Err() == nil; n++ {
		answered := make(chan struct{})
		all.Go(func() {
			defer close(answered)
			c.one(asks, number, n)
		})
		select {
		case <-answered:
		case <-time.After(patience):
		}
		time.Sleep(rest)
	}
}

// one makes one call.
func (c *callers) one(asks *http.Client, number, n int) {
	l := c.ledger
	switch {
	case n%10 == 3:
		c.count(asks)
	case n%10 == 7:
		key := fmt.Sprintf("%s/%d/%d", c.prefix, number, n)
		a := c.through(asks, "put", map[string]any{"key": key})
		l.note("write", a, func(a answer) bool { _, err := strconv.ParseUint(strings.Trim(a.body, `"`), 10, 64); return err == nil })
		if a.err == nil && a.status == http.StatusOK {
			l.mu.Lock()
			l.put[key] = true
			l.mu.Unlock()
		}
	default:
		a := c.through(asks, "add", map[string]any{"a": n, "b": number})
		l.note("plain", a, func(a answer) bool { return a.body == strconv.Itoa(n+number) })
	}
}

// through calls a tool through the balancer. The call continues when the run ends, so that every call is counted.
func (c *callers) through(asks *http.Client, tool string, arguments any) answer {
	return call(context.Background(), asks, c.url, c.token, tool, arguments)
}

func (c *callers) count(asks *http.Client) {
	l := c.ledger
	a := c.through(asks, "count", map[string]any{"key": counter})
	n, err := strconv.Atoi(a.body)
	l.note("write", a, func(answer) bool { return err == nil && n > 0 })
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.err == nil && a.status == http.StatusOK && err == nil {
		l.counted = append(l.counted, counted{a.from, a.to, n})
	} else {
		l.maybe++
	}
}

// note records an answer.
func (l *ledger) note(kind string, a answer, right func(answer) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of, took := l.kinds[kind], a.to.Sub(a.from)
	l.late = max(l.late, took)
	l.slow = append(l.slow, took)
	switch {
	case a.err != nil:
		of.failed++
		l.wrongly("a call got no answer from the balancer: %v", a.err)
	case a.lost != "":
		l.lost = append(l.lost, loss{kind, a.lost, a.body, a.from, a.to})
	case a.status == http.StatusOK && right(a):
		of.right++
	case a.status == http.StatusOK:
		of.failed++
		l.wrongly("a call was answered wrongly by %s: %.200s", a.by, a.body)
	case kind == "write" && a.refused():
		of.refused++
	default:
		of.failed++
		l.wrongly("a call was answered %d by %s after %v: %.300s", a.status, a.by, took.Round(time.Millisecond), a.body)
	}
}

// settle judges calls without an answer, which are only allowed if they were in flight on a killed server.
func (l *ledger) settle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.lost {
		if l.excused(one) {
			l.kinds[one.kind].lost++
			continue
		}
		l.kinds[one.kind].failed++
		l.wrongly("a call was lost on %s, which was not killed: %s", one.name, one.why)
	}
}

// counts returns what is wrong with the counts that callers were told. Each count must be different. It must also be larger than every count that
// was answered before its own request began.
func counts(all []counted) (wrong []string) {
	slices.SortFunc(all, func(a, b counted) int { return a.n - b.n })
	var latest time.Time // the latest beginning of all smaller counts
	for i, c := range all {
		if i > 0 && all[i-1].n == c.n {
			wrong = append(wrong, fmt.Sprintf("two callers were told the count %d", c.n))
		}
		if c.to.Before(latest) {
			wrong = append(wrong, fmt.Sprintf("the count %d was answered before a smaller one was asked for", c.n))
		}
		if c.from.After(latest) {
			latest = c.from
		}
	}
	return wrong
}
