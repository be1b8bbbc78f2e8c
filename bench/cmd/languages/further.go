package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/measure"
	"github.com/toolsrv/toolsrv/bench/internal/service"
)

// further is how many tools are added after the first one, for which the engine was compiled.
const further = 20

func (b *bench) furtherPython(ctx context.Context) error {
	return b.further(ctx, "py", "add.py", `module(namespace="bench")`, `module(namespace="bench%d")`)
}

func (b *bench) furtherJavaScript(ctx context.Context) error {
	return b.further(ctx, "js", "add.ts", `module({ namespace: "bench" })`, `module({ namespace: "bench%d" })`)
}

// further measures what one more tool of an engine costs: the time from adding its file to its first answer, and memory. All tools are the same
// script in different namespaces.
func (b *bench) further(ctx context.Context, prefix, script, namespace, other string) error {
	text, err := os.ReadFile(filepath.Join(b.scripts, script))
	if err != nil {
		return err
	}
	if !bytes.Contains(text, []byte(namespace)) {
		return fmt.Errorf("%s does not say %s", script, namespace)
	}
	directory, err := os.MkdirTemp("", "toolsrv-further-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	if err := os.Mkdir(service.Tools(directory), 0o700); err != nil {
		return err
	}
	var files []string
	for i := range further + 1 {
		source := filepath.Join(b.built, fmt.Sprintf("%s%d%s", prefix, i, filepath.Ext(script)))
		if err := os.WriteFile(source, bytes.ReplaceAll(text, []byte(namespace), fmt.Appendf(nil, other, i)), 0o600); err != nil {
			return err
		}
		if err := b.compile(ctx, source, source+".wasm"); err != nil {
			return err
		}
		files = append(files, source+".wasm")
	}
	drop := func(i int) error {
		return os.Rename(files[i], filepath.Join(service.Tools(directory), fmt.Sprintf("%d.wasm", i)))
	}
	if err := drop(0); err != nil {
		return err
	}
	if _, err := b.held(ctx, directory, 1, nil); err != nil { // from now on the engine's code is in the cache
		return err
	}
	one, err := b.held(ctx, directory, 1, nil)
	if err != nil {
		return err
	}
	var took []float64
	_, err = b.held(ctx, directory, 1, func(client *http.Client, url string) error {
		for i := 1; i <= further; i++ {
			begin := time.Now()
			if err := drop(i); err != nil {
				return err
			}
			answered, err := first(ctx, client, address(url, i))
			if err != nil {
				return err
			}
			took = append(took, float64(answered.Sub(begin).Milliseconds()))
		}
		return nil
	})
	if err != nil {
		return err
	}
	all, err := b.held(ctx, directory, further+1, nil)
	if err != nil {
		return err
	}
	b.report.Explain("%s: %.0f MiB with one tool, %.0f MiB with %d", script, mebibytes(one), mebibytes(all), further+1)
	b.report.Figure(prefix+"_second_tool_mib", mebibytes(all-one)/further)
	b.report.Figure(prefix+"_start_ms", measure.Median(took))
	return nil
}

// held starts a server on a directory, and calls its first n tools. Then it runs the function something, if that is not nil. It returns the memory
// that the server holds after that.
func (b *bench) held(ctx context.Context, directory string, n int, something func(client *http.Client, url string) error) (int64, error) {
	s, err := service.Start(ctx, service.Options{
		Binary: b.server, Directory: directory,
		Env: []string{"GOGC=50"}, // so that the garbage of the start does not count as the tools'
	})
	if err != nil {
		return 0, err
	}
	defer s.Stop(time.Minute) // this only fails if the server has failed already
	if err := s.Ready(ctx); err != nil {
		return 0, err
	}
	client := &http.Client{Timeout: time.Minute}
	defer client.CloseIdleConnections()
	for i := range n {
		if _, err := first(ctx, client, address(s.URL, i)); err != nil {
			return 0, err
		}
	}
	if something != nil {
		if err := something(client, s.URL); err != nil {
			return 0, err
		}
	}
	if _, err := s.Quiet(ctx); err != nil {
		return 0, err
	}
	held, _, err := s.Resident()
	return held, errors.Join(err, s.Stop(time.Minute))
}

func address(url string, i int) string { return fmt.Sprintf("%s/bench%d/add", url, i) }

func mebibytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// first calls the tool add at an address until it answers, and returns when that was.
func first(ctx context.Context, client *http.Client, url string) (time.Time, error) {
	for {
		answer, err := client.Post(url, "application/json", strings.NewReader(input))
		if err != nil {
			return time.Time{}, err
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		switch {
		case err != nil:
			return time.Time{}, err
		case answer.StatusCode == http.StatusOK && string(text) == output:
			return time.Now(), nil
		// The tool is not served yet, or its engine is still being compiled.
		case answer.StatusCode != http.StatusNotFound && answer.StatusCode != http.StatusServiceUnavailable && answer.StatusCode != http.StatusGatewayTimeout:
			return time.Time{}, fmt.Errorf("%s answered %s: %s", url, answer.Status, text)
		}
		select {
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		case <-time.After(2 * time.Millisecond):
		}
	}
}
