package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/toolsrv/toolsrv/bench/internal/measure"
)

// fetches is how often a call of the tool fetch sends its request (FETCHES of reach.rs).
const fetches = 30

// http compares a tool that gets a document of 1 KiB from a server on this machine with Go's client, which gets the same.
func (b *bench) http(ctx context.Context) (err error) {
	document := `{"weather": "` + strings.Repeat("fair ", 200) + `"}`
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, document)
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() {
		err = errors.Join(err, server.Close())
		if end := <-served; !errors.Is(end, http.ErrServerClosed) {
			err = errors.Join(err, end)
		}
	}()
	port := listener.Addr().(*net.TCPAddr).Port
	url := fmt.Sprintf("http://127.0.0.1:%d/weather", port)
	s, err := b.service(ctx, port, fmt.Sprintf("[[grant]]\nmatch = 'reach/*'\nhttp = ['http://127.0.0.1:%d']\nprivate = ['127.0.0.1/32']\nkv = '1MiB'\ntools = ['bench/add']\n", port))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	arguments := fmt.Sprintf(`{"url":%q}`, url)
	get := func() error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			return err
		}
		if string(body) != document {
			return fmt.Errorf("got %.100q", body)
		}
		return nil
	}
	times, err := measure.Compare(b.rounds, b.span,
		measure.Side{Name: "tool", Do: func() error { return s.call(ctx, "/reach/fetch", arguments, document) }},
		measure.Side{Name: "client", Do: func() error {
			for range fetches {
				if err := get(); err != nil {
					return err
				}
			}
			return nil
		}})
	if err != nil {
		return err
	}
	b.report.Explain("a tool that gets %d bytes over HTTP %d times in a call: %.1f µs each; Go's client: %.1f µs", len(document), fetches,
		times.Of(0)/fetches/1e3, times.Of(1)/fetches/1e3)
	b.report.Figure("http_vs_nethttp", times.Ratio(0, 1))
	b.report.Figure("http_us", times.Difference(0, 1)/fetches/1e3)
	return nil
}
