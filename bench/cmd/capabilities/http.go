package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/toolsrv/toolsrv/bench/internal/measure"
)

// fetches is how many times a call of the tool fetch sends its request (FETCHES in reach.rs).
const fetches = 30

// http measures a tool that gets a document of 1 KiB from a server on this machine. It is compared with Go's client, which gets the same document
// with the same precaution: it uses a connection for one call only.
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
	defer func() { err = errors.Join(err, s.close()) }()
	arguments := fmt.Sprintf(`{"url":%q}`, url)
	get := func(client *http.Client) error {
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
	tool := func() error { return s.call(ctx, "/reach/fetch", arguments, document) }
	own := func() error { // as for a tool, with connections that no other call uses
		client := &http.Client{Transport: &http.Transport{}}
		defer client.CloseIdleConnections()
		for range fetches {
			if err := get(client); err != nil {
				return err
			}
		}
		return nil
	}
	for _, m := range []struct {
		figure  string
		callers int
	}{{"http_vs_nethttp", 8}, {"http_vs_nethttp_alone", 1}} {
		times, err := measure.Compare(b.Rounds, b.Span,
			measure.Side{Name: "tool", Do: sideBySide(m.callers, tool)},
			measure.Side{Name: "client", Do: sideBySide(m.callers, own)})
		if err != nil {
			return err
		}
		each := func(side int) float64 { return times.Of(side) / float64(fetches*m.callers) / 1e3 }
		b.report.Explain("%d callers of a tool that gets %d bytes over HTTP %d times in a call: %.1f µs each; Go's client: %.1f µs", m.callers, len(document), fetches, each(0), each(1))
		b.report.Figure(m.figure, times.Ratio(0, 1))
	}
	return nil
}

// sideBySide returns a function that runs do for n callers at a time.
func sideBySide(n int, do func() error) func() error {
	return func() error {
		errs := make([]error, n)
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() { errs[i] = do() })
		}
		all.Wait()
		return errors.Join(errs...)
	}
}
