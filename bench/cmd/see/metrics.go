package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
	"github.com/toolsrv/toolsrv/bench/internal/service"
)

// metrics are the configuration tables of a server with metrics.
const metrics = "[metrics]\nenabled = true"

// scraped requests /metrics as Prometheus does, and returns the compressed size of the answer, and its text.
func scraped(ctx context.Context, s *service.Service) (sent int, text []byte, err error) {
	return get(ctx, s, "/metrics", "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2")
}

// get requests a path with compression, and returns the compressed size of the answer, and its text.
func get(ctx context.Context, s *service.Service, path, accept string) (sent int, text []byte, err error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
	if err != nil {
		return 0, nil, err
	}
	q.Header.Set("Accept", accept)
	q.Header.Set("Accept-Encoding", "gzip")
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return 0, nil, err
	case answer.StatusCode != http.StatusOK:
		return 0, nil, fmt.Errorf("%s answered %d: %.200s", path, answer.StatusCode, body)
	case answer.Header.Get("Content-Encoding") != "gzip":
		return len(body), body, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	text, err = io.ReadAll(z)
	return len(body), text, err
}

// metricsCost compares a server whose metrics are requested each second with one that does not count them.
func (b *bench) metricsCost(ctx context.Context) error {
	return b.cost(ctx, "metrics_cost", "", metrics, func(ctx context.Context, s *service.Service) (func() error, error) {
		asking, stop := context.WithCancel(ctx)
		asked := make(chan error, 1)
		go func() { asked <- askEachSecond(asking, s) }()
		return func() error { stop(); return <-asked }, nil
	})
}

// askEachSecond requests /metrics each second until ctx is done.
func askEachSecond(ctx context.Context, s *service.Service) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		if _, _, err := scraped(ctx, s); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

const (
	files, each = 100, 100 // tools in each file
	called      = 10       // called tools in each file
)

// scrape measures how long a server with 10,000 tools, of which 1,000 were called, takes to answer Prometheus.
func (b *bench) scrape(ctx context.Context) (err error) {
	s, err := b.serve(ctx, metrics, func(directory string) error { return b.guests.FillNamespaces(directory, files, each) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for file := range files {
		for tool := range called {
			path := fmt.Sprintf("/n%02d/t%02d", file, tool)
			answer, err := http.Post(s.URL+path, "application/json", strings.NewReader(guest.Input))
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, answer.Body)
			if err = errors.Join(err, answer.Body.Close()); err != nil || answer.StatusCode != http.StatusOK {
				return fmt.Errorf("%s answered %d, %w", path, answer.StatusCode, err)
			}
		}
	}
	var took []float64
	sent, length := 0, 0
	for range b.Rounds + 1 {
		begun := time.Now()
		n, text, err := scraped(ctx, s)
		if err != nil {
			return err
		}
		took, sent, length = append(took, time.Since(begun).Seconds()*1e3), n, len(text)
		if n := bytes.Count(text, []byte("\ntoolsrv_calls_total{")); n != files*called {
			return fmt.Errorf("/metrics lists %d tools, not %d", n, files*called)
		}
	}
	b.report.Explain("an answer has %d KiB, and %d KiB as it is sent", length>>10, sent>>10)
	b.report.Figure("scrape_10k_ms", measure.Median(took[1:]))
	return nil
}
