package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/bench/internal/load"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
	"github.com/toolsrv/toolsrv/bench/internal/principals"
	"github.com/toolsrv/toolsrv/bench/internal/service"
	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/client"
	"github.com/toolsrv/toolsrv/internal/admin/socket"
)

// A served is a running server with its admin socket.
type served struct {
	*service.Service
	binary string
	over   *client.Client
}

// serve starts the server with the files that fill puts into its folder of tools.
func (b *bench) serve(ctx context.Context, fill func(directory string) error) (*served, error) {
	s, err := service.InFolder(ctx, service.Options{Binary: b.server, Rest: "[state]\ndirectory = \"state\""}, fill)
	if err != nil {
		return nil, err
	}
	over, err := client.OverSocket(filepath.Join(s.Directory, "state", socket.Name))
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &served{s, b.server, over}, nil
}

func (s *served) close() error {
	s.over.Close()
	return s.Close()
}

// command runs a toolsrv command that asks the server, and returns its output.
func (s *served) command(ctx context.Context, arguments ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, s.binary, append(arguments, "--config", filepath.Join(s.Directory, "toolsrv.toml"))...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%v: %w: %s", arguments, err, said.Bytes())
	}
	return out, err
}

// token makes a token, and returns its secret.
func (s *served) token(ctx context.Context, name string, scopes ...string) (string, error) {
	answer, err := s.over.Do(ctx, "tokens add", admin.NewToken{Name: name, Scopes: scopes}, "")
	if err != nil {
		return "", err
	}
	var made admin.TokenMade
	err = answer.Into(&made)
	return made.Secret, err
}

const manyTokens = 10_000

// scoped compares a server whose callers show one of 10,000 tokens with one that asks for none. Both are called as fast as they answer.
func (b *bench) scoped(ctx context.Context) (err error) {
	open, err := b.serve(ctx, b.guests.FillSmall)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, open.close()) }()
	var secret string
	scoped, err := b.serve(ctx, func(directory string) (err error) {
		secret, err = principals.Fill(ctx, filepath.Join(directory, "..", "state"), manyTokens)
		return errors.Join(err, b.guests.FillSmall(directory))
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, scoped.close()) }()
	var listed admin.Tokens
	answer, err := scoped.over.Do(ctx, "tokens list", struct{}{}, "")
	if err == nil {
		err = answer.Into(&listed)
	}
	if err != nil {
		return err
	}
	for _, t := range listed.Tokens {
		if t.State != "valid" {
			return fmt.Errorf("a token is %+v", t)
		}
	}
	if len(listed.Tokens) != manyTokens {
		return fmt.Errorf("there are %d tokens, not %d", len(listed.Tokens), manyTokens)
	}
	const connections = 16
	generate := func(s *served, headers ...string) (rate, each float64, err error) {
		seen, used, err := s.Call(ctx, load.Load{
			Text: load.Request(s.Host(), "/bench/add", guest.Input, headers...), Answer: guest.Output, Connections: connections, Span: b.Span,
		}, b.report.Log)
		return seen.Rate, used.Seconds() / float64(seen.All), err
	}
	ratios, rates, costs := make([]float64, b.Rounds), make([]float64, b.Rounds), make([]float64, b.Rounds)
	for i := range ratios {
		ours, cost, err := generate(scoped, "Authorization: Bearer "+secret)
		if err != nil {
			return err
		}
		theirs, open, err := generate(open)
		if err != nil {
			return err
		}
		ratios[i], rates[i], costs[i] = ours/theirs, ours, open/cost
	}
	b.report.Explain("%.0f calls/s with a scoped token of %d, by %d connections; the processor's time for a call without a token is %.3f of that for one with it",
		measure.Median(rates), manyTokens, connections, measure.Median(costs))
	b.report.Figure("scoped_vs_open", measure.Median(ratios))
	return nil
}

// A caller calls bench/add again and again, each time as soon as it is answered.
type caller struct {
	url, token string
	client     http.Client
}

// call returns the status of a call.
func (c *caller) call(ctx context.Context) (int, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/bench/add", strings.NewReader(guest.Input))
	if err != nil {
		return 0, err
	}
	q.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		q.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.client.Do(q)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, errors.Join(err, answer.Body.Close())
}

// switching measures the time from the start of `toolsrv disable` until a call is refused. A client calls all the time.
func (b *bench) switching(ctx context.Context) (err error) {
	s, err := b.serve(ctx, b.guests.FillSmall)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	command := func(arguments ...string) error {
		_, err := s.command(ctx, arguments...)
		return err
	}
	c := &caller{url: s.URL}
	var took []float64
	for range b.Rounds {
		if status, err := c.call(ctx); status != http.StatusOK {
			return fmt.Errorf("before it is switched off: %d, %w", status, err)
		}
		begun, ended := time.Now(), make(chan error, 1)
		go func() { ended <- command("disable", "bench/add", "--reason", "it is measured") }()
		for status := http.StatusOK; status == http.StatusOK; {
			if status, err = c.call(ctx); err != nil {
				return errors.Join(err, <-ended)
			}
			select {
			case err := <-ended:
				if err != nil {
					return err // if the command failed, no call would ever be refused
				}
				ended <- nil
			default:
			}
		}
		took = append(took, time.Since(begun).Seconds()*1e3)
		if err := errors.Join(<-ended, command("reset", "bench/add")); err != nil {
			return err
		}
	}
	b.report.Figure("switch_ms", measure.Median(took))
	return nil
}

// revoking measures the time from the confirmation that a token is revoked to the last accepted request with the token. Eight clients call
// all the time.
func (b *bench) revoking(ctx context.Context) (err error) {
	s, err := b.serve(ctx, b.guests.FillSmall)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if _, err := s.token(ctx, "stays", "bench/*"); err != nil { // so that callers always need a token
		return err
	}
	var latest time.Duration
	calls := 0
	for range b.Rounds {
		token, err := s.token(ctx, "goes", "bench/*")
		if err != nil {
			return err
		}
		last, made, errs := make([]time.Time, 8), make([]int, 8), make([]error, 8)
		busy := make(chan struct{}, len(last))
		var all sync.WaitGroup
		for i := range last {
			all.Go(func() {
				c := &caller{url: s.URL, token: token}
				defer c.client.CloseIdleConnections()
				for status := http.StatusOK; status == http.StatusOK; {
					begun := time.Now()
					if status, errs[i] = c.call(ctx); status == http.StatusOK {
						last[i] = begun
					}
					if made[i]++; made[i] == 100 {
						busy <- struct{}{}
					}
				}
			})
		}
		for range last {
			<-busy
		}
		_, err = s.over.Do(ctx, "tokens revoke", admin.TokenName{Name: "goes"}, "")
		answered := time.Now()
		all.Wait()
		if err := errors.Join(append(errs, err)...); err != nil {
			return err
		}
		for i := range last {
			latest = max(latest, last[i].Sub(answered))
			calls += made[i]
		}
	}
	b.report.Explain("%d calls of 8 clients, and %d revocations", calls, b.Rounds)
	b.report.Figure("revoke_ms", latest.Seconds()*1e3)
	return nil
}
