package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/assemble"
	"github.com/toolsrv/toolsrv/bench/internal/service"
)

// nonsense are kinds of requests that anybody can send as fast as the network allows, each with the status of its answer.
func nonsense() []sent {
	const token = "Bearer attack-attack-attack"
	return []sent{
		{401, "GET", "/tools", "", http.Header{}},
		{401, "POST", "/mcp", "{}", http.Header{"Authorization": {"Bearer wrong"}}},
		{421, "GET", "/tools", "", http.Header{"Host": {"evil.example"}}},
		{403, "POST", path(0), "{}", http.Header{"Origin": {"https://evil.example"}, "Authorization": {token}}},
		{404, "POST", "/nothing/here", "{}", http.Header{"Authorization": {token}}},
		{405, "PUT", path(0), "{}", http.Header{"Authorization": {token}}},
		{413, "POST", path(0), strings.Repeat(" ", 2<<10), http.Header{"Authorization": {token}, "Content-Type": {"application/json"}}},
		{415, "POST", path(0), "{}", http.Header{"Authorization": {token}, "Content-Type": {"text/plain"}}},
		{422, "POST", path(0), "{", http.Header{"Authorization": {token}, "Content-Type": {"application/json"}}},
		{400, "POST", "/mcp", "{}", http.Header{"Authorization": {token}, "Content-Type": {"application/json"}}},
	}
}

// A sent is a request and the status that its answer must have.
type sent struct {
	status             int
	method, path, body string
	header             http.Header
}

func (n sent) send(ctx context.Context, client *http.Client, url string) error {
	r, err := http.NewRequestWithContext(ctx, n.method, url+n.path, strings.NewReader(n.body))
	if err != nil {
		return err
	}
	r.Header, r.Host = n.header, n.header.Get("Host")
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != n.status {
		return fmt.Errorf("%s %s: got %d %.200s, want %d", n.method, n.path, answer.StatusCode, text, n.status)
	}
	return nil
}

func attackNonsense(ctx context.Context, a *arena) error {
	const span = 5 * time.Second
	if err := a.fill(1, assemble.Tool{}); err != nil {
		return err
	}
	s, err := a.start(ctx, service.Options{Rest: "[auth]\ntokens = [\"attack-attack-attack\"]\n[limits]\ninput = \"1KiB\"\n"})
	if err != nil {
		return err
	}
	lines, bytes := s.Log.Lines.Load(), s.Log.Bytes.Load()
	kinds := nonsense()
	var requests atomic.Int64
	var wrong error
	var once sync.Once
	var all sync.WaitGroup
	end := time.Now().Add(span)
	for i := range 2 * len(kinds) {
		all.Go(func() {
			client := &http.Client{Timeout: hang, Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for time.Now().Before(end) && ctx.Err() == nil {
				if err := kinds[i%len(kinds)].send(ctx, client, s.URL); err != nil {
					once.Do(func() { wrong = err })
					return
				}
				requests.Add(1)
			}
		})
	}
	all.Wait()
	err = errors.Join(wrong, s.Stop(20*time.Second)) // so that all lines are written
	lines, bytes = s.Log.Lines.Load()-lines, s.Log.Bytes.Load()-bytes
	a.tell("%d requests of %d kinds in %v: %d lines, %.1f KiB of log a second", requests.Load(), len(kinds), span, lines, float64(bytes)/1024/span.Seconds())
	if most := int64(len(kinds)) * int64(span/time.Second+2); err == nil && lines > most {
		err = fmt.Errorf("%d lines were logged, the bar is %d", lines, most)
	}
	return err
}
