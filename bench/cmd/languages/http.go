package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/load"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
	"github.com/toolsrv/toolsrv/bench/internal/service"
)

// connections is how many connections make requests at a time.
const connections = 16

// http compares REST calls of the addition in Python with the same function behind FastAPI: once as a plain function, which FastAPI runs on a
// thread, and once written for FastAPI's event loop.
func (b *bench) http(ctx context.Context) error {
	if b.fastapi == "" {
		b.report.Explain("py_http_vs_fastapi is left out: there is no -fastapi")
		return nil
	}
	directory, err := os.MkdirTemp("", "toolsrv-http-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	tools := service.Tools(directory)
	if err := os.Mkdir(tools, 0o700); err != nil {
		return err
	}
	if err := b.compile(ctx, filepath.Join(b.scripts, "add.py"), filepath.Join(tools, "add.wasm")); err != nil {
		return err
	}
	s, err := service.Start(ctx, service.Options{Binary: b.server, Directory: directory})
	if err != nil {
		return err
	}
	defer s.Stop(time.Minute) // this only fails if the server has failed already
	if err := s.Ready(ctx); err != nil {
		return err
	}
	if _, err := s.Quiet(ctx); err != nil {
		return err
	}
	peer, err := service.StartPeer(ctx, strings.Fields(b.fastapi)...)
	if err != nil {
		return err
	}
	defer peer.Stop()
	// FastAPI listens before its workers have started, and our server listens before the engine is compiled.
	for _, url := range []string{s.URL, "http://" + peer.Host} {
		if _, err := first(ctx, &http.Client{Timeout: time.Minute}, url+"/bench/add"); err != nil {
			return err
		}
	}
	sides := [3]struct{ host, path string }{
		{strings.TrimPrefix(s.URL, "http://"), "/bench/add"}, {peer.Host, "/bench/add"}, {peer.Host, "/bench/add_async"},
	}
	var rates, ratios [len(sides)][]float64 // calls/s of each side, and the ratio of ours to them
	for range b.Rounds {
		for i, side := range sides {
			seen, err := load.Generate(ctx, load.Load{
				Host: side.host, Text: load.Request(side.host, side.path, input), Answer: output, Connections: connections, Span: 2 * b.Span,
			}, b.report.Log)
			if err != nil {
				return err
			}
			rates[i] = append(rates[i], seen.Rate)
			ratios[i] = append(ratios[i], rates[0][len(rates[0])-1]/seen.Rate)
		}
	}
	b.report.Explain("HTTP on loopback, %d kept-alive connections: %.0f calls/s, FastAPI %.0f; with a function for its event loop %.0f, a ratio of %.2f", connections,
		measure.Median(rates[0]), measure.Median(rates[1]), measure.Median(rates[2]), measure.Median(ratios[2]))
	b.report.Figure("py_http_vs_fastapi", measure.Median(ratios[1]))
	return nil
}
