package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/measure"
	"github.com/toolsrv/toolsrv/bench/internal/service"
)

// rounds is how many times each change is made.
const rounds = 9

// whatChanges prints what changes cost a server with many tools in one folder: a row for each number of tools.
func whatChanges(ctx context.Context, server string, makes maker, numbers string, out io.Writer) error {
	fmt.Fprintln(out, "| tools | a file is replaced | processor | first search then | second | SIGHUP, nothing changed | processor | SIGHUP, a limit changed | processor | processor, 30 s idle |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|---|---|---|")
	for _, text := range strings.Split(numbers, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < rounds {
			return fmt.Errorf("-tools: %q is not a number of tools, %d at least", text, rounds)
		}
		line, err := changesOf(ctx, server, makes, n)
		if err != nil {
			return fmt.Errorf("%d tools: %w", n, err)
		}
		fmt.Fprintln(out, line)
	}
	return nil
}

// A timed has the measured times of one kind of change.
type timed struct{ took, used []float64 }

func (t timed) String() string {
	return fmt.Sprintf("%.1f ms | %.0f ms", measure.Median(t.took)/1e6, measure.Median(t.used)/1e6)
}

func changesOf(ctx context.Context, server string, makes maker, n int) (line string, err error) {
	directory, err := os.MkdirTemp("", "toolsrv-scale-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(directory)
	for _, err := range []error{os.Mkdir(service.Tools(directory), 0o700), os.Mkdir(filepath.Join(directory, "aside"), 0o700)} {
		if err != nil {
			return "", err
		}
	}
	for i := range n {
		if err := write(service.Tools(directory), fmt.Sprint("add", i), 0, makes); err != nil { // a version with the same code, which is compiled only once
			return "", err
		}
	}
	told := make(chan string, 1000)
	o := service.Options{Binary: server, Directory: directory, Rest: fmt.Sprintf("modules = %d", n+1), Each: func(line []byte) {
		var said struct{ Msg string }
		if json.Unmarshal(line, &said) == nil && (said.Msg == "tool replaced" || said.Msg == "configuration reloaded") {
			told <- said.Msg
		}
	}}
	s, err := service.Start(ctx, o)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Stop(time.Minute)) }()
	if err := s.Ready(ctx); err != nil {
		return "", err
	}
	if _, err := s.Quiet(ctx); err != nil {
		return "", err
	}
	// measured makes a change, and waits until the log says that it is in force. It returns how long that took, and the processor time until the
	// server is idle again.
	measured := func(t *timed, want string, change func() error, then func() error) error {
		before, err := s.Processor()
		if err != nil {
			return err
		}
		began := time.Now()
		if err := change(); err != nil {
			return err
		}
		for said := ""; said != want; {
			select {
			case said = <-told:
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Minute):
				return fmt.Errorf("the log did not say %q", want)
			}
		}
		t.took = append(t.took, float64(time.Since(began)))
		if err := then(); err != nil {
			return err
		}
		time.Sleep(time.Second) // less than the time between two scans of all files, but more than the work after a change
		after, err := s.Processor()
		t.used = append(t.used, float64(after-before))
		return err
	}
	nothing := func() error { return nil }
	var replaced, same, limited timed
	var first, second []float64
	for i := range rounds {
		name := fmt.Sprint("add", i)
		aside := filepath.Join(directory, "aside", name+".wasm")
		if err := write(filepath.Dir(aside), name, n+i, makes); err != nil {
			return "", err
		}
		time.Sleep(50 * time.Millisecond) // a file that was written at the moment of its rename looks as if it was written in place
		err := measured(&replaced, "tool replaced", func() error { return os.Rename(aside, filepath.Join(service.Tools(directory), name+".wasm")) }, func() error {
			for _, times := range []*[]float64{&first, &second} {
				began := time.Now()
				if err := search(ctx, s.URL, "add two numbers", "bench-add"); err != nil {
					return err
				}
				*times = append(*times, float64(time.Since(began)))
			}
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	for range rounds {
		if err := measured(&same, "configuration reloaded", func() error { return s.Signal(syscall.SIGHUP) }, nothing); err != nil {
			return "", err
		}
	}
	config := filepath.Join(directory, "toolsrv.toml")
	text, err := os.ReadFile(config)
	if err != nil {
		return "", err
	}
	for i := range rounds {
		next := fmt.Appendf(bytes.Clone(text), "[[override]]\nmatch = \"bench/add%d\"\ninput = \"%dKiB\"\n", i, i+1)
		if err := os.WriteFile(config, next, 0o600); err != nil {
			return "", err
		}
		if err := measured(&limited, "configuration reloaded", func() error { return s.Signal(syscall.SIGHUP) }, nothing); err != nil {
			return "", err
		}
	}
	before, err := s.Processor()
	if err != nil {
		return "", err
	}
	time.Sleep(30 * time.Second)
	after, err := s.Processor()
	return fmt.Sprintf("| %d | %v | %.1f ms | %.1f ms | %v | %v | %.0f ms |", n, replaced, measure.Median(first)/1e6, measure.Median(second)/1e6, same, limited,
		float64(after-before)/1e6), err
}

// search searches for some words over MCP, and fails unless the answer contains a text.
func search(ctx context.Context, url, words, want string) error {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_tools","arguments":{"query":%q},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}}}}`, words)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/mcp", strings.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "search_tools"} {
		request.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && (answer.StatusCode != http.StatusOK || !bytes.Contains(text, []byte(want))) {
		err = fmt.Errorf("the search answered %s: %.300s", answer.Status, text)
	}
	return err
}
