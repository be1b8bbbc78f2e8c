package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/gate"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
	"github.com/toolsrv/toolsrv/internal/admin"
)

// changes is how many switches are measured in each round.
const changes = 20

// pollEvery is how long a caller waits between two calls that find out whether a change is in force.
const pollEvery = time.Millisecond / 2

// changing measures the time from the request that switches a tool at one server until the switch is in force on the last of three servers.
func (b *bench) changing(ctx context.Context) (err error) {
	all, end, err := b.replicas(ctx, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	callers := make([]*caller, len(all))
	for i, s := range all {
		callers[i] = s.caller()
		defer callers[i].close()
	}
	var took []time.Duration
	for n := range b.Rounds * changes {
		begun := time.Now()
		if err := all[n%len(all)].flip(ctx, n%2 == 1); err != nil {
			return err
		}
		last, err := onAll(all, func(i int) error { return callers[i].until(ctx, n%2 == 1) })
		if err != nil {
			return err
		}
		took = append(took, last.Sub(begun))
	}
	b.report.Explain("change_ms: %d switches, half of them in force on all %d servers after %v, the slowest after %v",
		len(took), len(all), measure.Percentile(took, 50).Round(10*time.Microsecond), measure.Percentile(took, 100).Round(10*time.Microsecond))
	b.report.Figure("change_ms", measure.Percentile(took, 99).Seconds()*1e3)
	return nil
}

// flip switches bench/add.
func (s *server) flip(ctx context.Context, on bool) error {
	operation := "disable"
	if on {
		operation = "enable"
	}
	_, err := s.over.Do(ctx, operation, admin.Switched{Names: []string{"bench/add"}}, "")
	return err
}

// until calls bench/add until it is switched on, or off.
func (c *caller) until(ctx context.Context, on bool) error {
	late := time.After(time.Minute)
	for {
		status, body, err := c.call(ctx, "/bench/add", `{"a": 2, "b": 3}`)
		switch {
		case err != nil:
			return err
		case (status == http.StatusOK) == on:
			return nil
		}
		select {
		case <-late:
			return fmt.Errorf("after a minute bench/add answers %d %.200s", status, body)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pollEvery):
		}
	}
}

// missed is how many changes a server misses while it is cut off.
const missed = 1000

// catching cuts one of two servers off while changes are made, and measures how long after the reconnection it knows all of them.
func (b *bench) catching(ctx context.Context) (err error) {
	nodes, endNodes, err := b.nodes(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, endNodes()) }()
	url := "nats://"
	var gates []*gate.Gate
	for i, host := range strings.Split(strings.TrimPrefix(nodes.URL(), "nats://"), ",") {
		g, err := gate.New(host)
		if err != nil {
			return err
		}
		defer g.Close()
		gates = append(gates, g)
		if i > 0 {
			url += ","
		}
		url += g.Address()
	}
	all, end, err := b.fleet(ctx, 2, "", func(i int) string { return []string{nodes.URL(), url}[i] })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	one, cut := all[0].caller(), all[1].caller()
	defer one.close()
	defer cut.close()
	for _, g := range gates {
		g.Shut()
	}
	shut := time.Now()
	for n := range missed {
		// The last change is a switch, and so is every fourth.
		if n%4 == 3 {
			err = all[0].flip(ctx, n%8 == 3)
		} else {
			err = one.must(ctx, "/reach/set", key(n), "0")
		}
		if err != nil {
			return fmt.Errorf("change %d: %w", n, err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Until(shut.Add(b.cut * time.Duration(n+1) / missed))):
		}
	}
	if err := cut.until(ctx, true); err != nil { // it still serves what it knew
		return fmt.Errorf("while it is cut off: %w", err)
	}
	begun := time.Now()
	for _, g := range gates {
		g.Open()
	}
	if err := cut.until(ctx, false); err != nil {
		return err
	}
	for n := range missed {
		if n%4 == 3 {
			continue
		}
		if err := cut.must(ctx, "/reach/get", key(n), "116"); err != nil {
			return fmt.Errorf("after the last change was known: %w", err)
		}
	}
	took := time.Since(begun)
	b.report.Explain("catch_up_s: cut off for %v, in which another server made %d changes", begun.Sub(shut).Round(time.Second), missed)
	b.report.Figure("catch_up_s", took.Seconds())
	return nil
}
