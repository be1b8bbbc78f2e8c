package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/service"
)

// manyScripts starts servers on a directory with the given number of scripts of an engine, first without a cache and then with the cache of the
// first start, and prints how long each takes until it is ready.
func manyScripts(ctx context.Context, server, engine, text string, out io.Writer) error {
	source, ok := sources[engine]
	if !ok {
		return fmt.Errorf("-engine: there is no script for %q", engine)
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return fmt.Errorf("-scripts: %q is not a number of scripts", text)
	}
	directory, err := os.MkdirTemp("", "toolsrv-scale-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	tools := service.Tools(directory)
	if err := os.Mkdir(tools, 0o700); err != nil {
		return err
	}
	for i := range n {
		name := fmt.Sprintf("add%d%s", i, filepath.Ext(source.Name))
		content := strings.NewReplacer("def add", "def add"+strconv.Itoa(i), "const add", "const add"+strconv.Itoa(i)).Replace(fmt.Sprintf(string(source.Data), i))
		if err := os.WriteFile(filepath.Join(tools, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "| scripts | start | ready | processor time |")
	fmt.Fprintln(out, "|---|---|---|---|")
	for _, start := range []string{"cold", "warm"} {
		begin := time.Now()
		s, err := service.Start(ctx, service.Options{Binary: server, Directory: directory, Rest: "scripts = true"})
		if err != nil {
			return err
		}
		err = s.Ready(ctx)
		ready := time.Since(begin)
		used, wrong := s.Processor()
		if err == nil {
			err = wrong
		}
		if err == nil {
			err = served(ctx, s, n)
		}
		if stopped := s.Stop(time.Minute); err == nil {
			err = stopped
		}
		if err != nil {
			return fmt.Errorf("%s: %w", start, err)
		}
		fmt.Fprintf(out, "| %d in %s | %s | %.1f s | %.1f s |\n", n, engine, start, ready.Seconds(), used.Seconds())
	}
	return nil
}

// served fails unless the OpenAPI document has that many tools.
func served(ctx context.Context, s *service.Service, n int) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/openapi.json", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var document struct{ Paths map[string]json.RawMessage }
	if err := json.NewDecoder(answer.Body).Decode(&document); err != nil {
		return err
	}
	there := 0
	for path := range document.Paths {
		if strings.Contains(path, "/add") {
			there++
		}
	}
	if there != n {
		return fmt.Errorf("%d of %d tools are served", there, n)
	}
	return nil
}
