package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/internal/admin"
)

const (
	// paced is how many calls a second the caller may make, and pacedBurst how many at once.
	paced, pacedBurst = 40, 5
	// askedEvery is how long the caller waits between two calls: it makes twice as many as it may.
	askedEvery = time.Second / (2 * paced)
	// looseShare is the fraction of calls that all servers together may let through above the rate. looseFor is a further time for which the rate
	// may be used up: servers may let calls through too early, and make up for that later.
	looseShare, looseFor = 0.1, time.Second
)

// spreadWithin is how long it may take, on a busy machine, until all servers have a new token.
const spreadWithin = time.Second

// A pace is a caller with a rate, who calls more often than the rate allows. Together the servers must let through what the rate allows. A server
// that is cut off applies the whole rate by itself, and must say that it is cut off.
type pace struct {
	*world
	token string
	sum   string
	wrong []string
}

func (*pace) name() string {
	return "calls let through, calls that the rate allows, refused, seconds in which servers said they were cut off"
}

// load implements trial.
func (p *pace) load(ctx context.Context, f fault, l *ledger) {
	p.sum, p.wrong = "", nil
	if p.token == "" {
		over := p.replicas[0].admin()
		for i := 1; over == nil; i++ { // the first servers may be down, since this fault may have stopped them
			over = p.replicas[i].admin()
		}
		var made admin.TokenMade
		answer, err := over.Do(ctx, "tokens add", admin.NewToken{Name: "paced", Scopes: []string{"chaos/*"}, TokenBounds: admin.TokenBounds{Rate: fmt.Sprint(paced, "/s"), Burst: pacedBurst}}, "")
		if err == nil {
			err = answer.Into(&made)
		}
		if err != nil {
			p.wrong = append(p.wrong, err.Error())
			return
		}
		p.token = made.Secret
		wait(ctx, spreadWithin)
	}
	var passed, refused atomic.Int64
	var all sync.WaitGroup
	asks := &http.Client{Transport: &http.Transport{}}
	defer asks.CloseIdleConnections()
	began := time.Now()
	var cut time.Duration
	all.Go(func() { cut = p.cutFor(ctx) })
	tick := time.NewTicker(askedEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		all.Go(func() {
			a := call(context.WithoutCancel(ctx), asks, p.balancer.front.URL, p.token, "add", map[string]any{"a": 1, "b": 2})
			if a.status == http.StatusTooManyRequests {
				refused.Add(1)
				return
			}
			if a.status == http.StatusOK {
				passed.Add(1)
			}
			l.note("plain", a, func(a answer) bool { return a.body == "3" })
		})
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	all.Wait()
	took := time.Since(began)
	most := (1+looseShare)*paced*(took+cut+looseFor).Seconds() + (1+replicas)*pacedBurst
	if strings.Contains(f.name, "node") || strings.Contains(f.name, "NATS") { // a server takes that long to notice
		most += paced * (replicas - 1) * knownAfter.Seconds()
	}
	has := paced * took.Seconds()
	p.sum = fmt.Sprintf("%d, %.0f, %d, %.1f", passed.Load(), has, refused.Load(), cut.Seconds())
	if float64(passed.Load()) > most {
		p.wrong = append(p.wrong, fmt.Sprintf("%d calls were let through in %v, with a rate of %d/s, while servers said for %v that they were cut off: more than %.0f", passed.Load(), took.Round(time.Millisecond), paced, cut.Round(time.Millisecond), most))
	}
}

// cutFor returns the total time for which servers say that they are cut off.
func (p *pace) cutFor(ctx context.Context) (sum time.Duration) {
	asks := &http.Client{Transport: &http.Transport{}, Timeout: askLimit}
	defer asks.CloseIdleConnections()
	for last := time.Now(); ctx.Err() == nil; {
		var says atomic.Int64
		var all sync.WaitGroup
		for _, r := range p.replicas {
			all.Go(func() {
				got, err := asks.Get(*r.url.Load() + "/readyz")
				if err != nil {
					return
				}
				defer got.Body.Close()
				if body, _ := io.ReadAll(got.Body); strings.Contains(string(body), `"cut off"`) {
					says.Add(1)
				}
			})
		}
		all.Wait()
		wait(ctx, askEvery)
		sum += time.Since(last) * time.Duration(says.Load())
		last = time.Now()
	}
	return sum
}

// verify implements trial.
func (p *pace) verify(context.Context) (string, []string) { return p.sum, p.wrong }
