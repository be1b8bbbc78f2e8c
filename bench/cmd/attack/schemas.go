package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/toolsrv/toolsrv/bench/internal/assemble"
	"github.com/toolsrv/toolsrv/bench/internal/service"
	"github.com/toolsrv/toolsrv/internal/manifest"
)

// The attack on the memory of files whose tools nobody calls: short texts that become large schemas.

// A shape returns a tool's schema, a JSON object of about that many bytes.
type shape struct {
	name   string
	schema func(bytes int) string
}

func shapes() []shape {
	members := func(format string, each int) func(int) string {
		return func(bytes int) string {
			return `{"type":"object","properties":{` + numbered(bytes/each, format) + `}}`
		}
	}
	return []shape{
		{"integers", func(bytes int) string {
			return `{"type":"object","properties":{"a":{"enum":[` + numbered(bytes/4, "%d") + `]}}}`
		}},
		{"empty", members(`"%d":{}`, 8)},
		{"titles", members(`"%d":{"title":"%[1]d"}`, 20)},
		{"patterns", members(`"%d":{"pattern":"^a%[1]d$"}`, 26)},
		{"nested", func(bytes int) string {
			deep := strings.Repeat(`{"not":`, 100) + "{}" + strings.Repeat("}", 100)
			return `{"type":"object","properties":{` + numbered(bytes/len(deep), `"%d":`+deep) + `}}`
		}},
	}
}

func numbered(n int, format string) string {
	var out strings.Builder
	for i := range max(1, n) {
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, format, i)
	}
	return out.String()
}

// hostile returns a manifest of many tools with a schema of one shape.
func (s shape) hostile(number int) ([]byte, error) {
	const size, tools = 757_000, 190
	m := manifest.Manifest{ABI: manifest.ABI, Namespace: fmt.Sprint(s.name, number)}
	schema := json.RawMessage(s.schema(size/tools - 100))
	for i := range tools {
		m.Tools = append(m.Tools, manifest.Tool{Name: fmt.Sprint("t", i), Description: "Does it.", Parameters: schema})
	}
	return json.Marshal(m)
}

func attackSchemas(ctx context.Context, a *arena) error {
	const each = 40
	if err := a.fill(20, assemble.Tool{}); err != nil {
		return err
	}
	files := 0
	for _, s := range shapes() {
		for i := range each {
			manifest, err := s.hostile(i)
			if err != nil {
				return err
			}
			files++
			if err := a.put(assemble.Tool{Name: fmt.Sprint(s.name, i), Number: int32(files), Manifest: manifest}); err != nil {
				return err
			}
		}
	}
	var refused, unexplained atomic.Int64
	// These are the limits that the server sets itself with 1 GiB. In a control group of that size, the server would swap instead of reaching them,
	// if there is swap.
	o := service.Options{Server: `memory = "512MiB"`, Env: []string{"GOMEMLIMIT=460MiB"}, Each: func(line []byte) {
		if strings.Contains(string(line), "refused") && strings.Contains(string(line), ".wasm") {
			if refused.Add(1); !strings.Contains(string(line), "server.memory") {
				unexplained.Add(1)
			}
		}
	}}
	s, err := a.start(ctx, o)
	if err != nil {
		return errors.Join(err, died(s))
	}
	a.tell("%d of %d files refused", refused.Load(), files)
	if unexplained.Load() > 0 {
		return fmt.Errorf("%d files were refused for another reason", unexplained.Load())
	}
	got := load{clients: 8, path: times(2000, func(i int) string { return path(i % 20) })}.run(ctx, s)
	a.tell("%v", &got)
	if err := got.judge(s); err != nil {
		return err
	}
	if got.refused > 0 {
		return fmt.Errorf("%d calls of other tools were refused", got.refused)
	}
	for _, list := range []string{"/openapi.json", "/tools"} {
		for range 3 {
			if err := read(ctx, s.URL+list); err != nil {
				return errors.Join(s.Died(), err)
			}
		}
	}
	return errors.Join(s.Died(), a.peak(s, 768<<20))
}

func died(s *service.Service) error {
	if s == nil {
		return nil
	}
	return s.Died()
}

// read reads the answer to a GET to its end.
func read(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, answer.Status)
	}
	return err
}
