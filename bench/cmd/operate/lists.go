package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/measure"
	"github.com/toolsrv/toolsrv/internal/config"
	public "github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/server"
	"github.com/toolsrv/toolsrv/wasmtools/service"
)

// The tools of the long lists: how many files there are, and how many tools in each.
const manyFiles, toolsEach = 100, 100

// many puts 10,000 tools into a folder.
func (b *bench) many(directory string) error {
	return b.guests.FillNamespaces(directory, manyFiles, toolsEach)
}

// listing measures `toolsrv tools --json` of 10,000 tools.
func (b *bench) listing(ctx context.Context) (err error) {
	s, err := b.serve(ctx, b.many)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	var took []float64
	for range b.Rounds + 1 {
		begun := time.Now()
		out, err := s.command(ctx, "tools", "--json")
		if err != nil {
			return err
		}
		took = append(took, time.Since(begun).Seconds()*1e3)
		if n := bytes.Count(out, []byte(`"path"`)); n != manyFiles*toolsEach {
			return fmt.Errorf("%d tools are listed, not %d", n, manyFiles*toolsEach)
		}
	}
	b.report.Figure("admin_10k_ms", measure.Median(took[1:]))
	return nil
}

const manyScopes = 1000

// lists measures how much the server keeps of its lists when callers with 1,000 different sets of scopes ask for all of them: the lists of REST and
// MCP, and OpenAPI documents, compressed and not. Every second caller may call all of the 10,000 tools, the rest some of them.
func (b *bench) lists(ctx context.Context) (err error) {
	folder, err := os.MkdirTemp("", "toolsrv-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	c := config.Default()
	c.Server.Addresses = []string{"127.0.0.1:0"}
	c.Tools.Directory, c.Tools.CacheDir = filepath.Join(folder, "tools"), filepath.Join(folder, "cache")
	c.MCP.Search = "never"
	if err := os.Mkdir(c.Tools.Directory, 0o700); err != nil {
		return err
	}
	if err := b.many(c.Tools.Directory); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(7, 7))
	secret := func(i int) string { return fmt.Sprintf("the-secret-of-team-%d", i) }
	for i := range manyScopes {
		scopes := []string{"n*", fmt.Sprintf("of-%d", i)}
		if i%2 == 1 {
			scopes[0] = "other"
			for range 1 + random.IntN(60) {
				scopes = append(scopes, fmt.Sprintf("n%02d", random.IntN(manyFiles)))
			}
		}
		c.Auth.Declared = append(c.Auth.Declared, config.Token{Name: fmt.Sprint("team-", i), SHA256: sha256.Sum256([]byte(secret(i))), Scopes: scopes})
	}
	of, err := service.Open(ctx, (*public.Config)(c.Handle()), service.Options{})
	if err != nil {
		return err
	}
	s, err := server.New(ctx, of, server.Options{})
	if err != nil {
		return errors.Join(err, of.Close())
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- errors.Join(s.Run(running), of.Close()) }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended)
	}()
	if err := of.Wait(ctx); err != nil {
		return err
	}
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before, most, size := heap(), int64(0), int64(0)
	begun := time.Now()
	for i := range manyScopes {
		l := lister{url: "http://" + s.Addr().String(), token: secret(i)}
		n, err := l.all(ctx)
		if err != nil {
			return err
		}
		if size += n; i%20 == 19 {
			most = max(most, heap()-before)
		}
	}
	b.report.Explain("%d sets of scopes × %d tools: %d MiB of lists and documents in %v; up to %.1f MiB of them are kept", manyScopes, manyFiles*toolsEach, size>>20,
		time.Since(begun).Round(time.Second), float64(most)/(1<<20))
	b.report.Figure("lists_scopes", float64(most)/(1<<20))
	return nil
}

// A lister asks for all lists with a token.
type lister struct{ url, token string }

// all asks for all lists, and returns how many bytes they have.
func (l lister) all(ctx context.Context) (size int64, err error) {
	for _, path := range []string{"/tools", "/openapi.json"} {
		tag := ""
		for _, encoding := range []string{"identity", "gzip"} {
			text, answer, err := l.ask(ctx, http.MethodGet, path, "", "Accept-Encoding", encoding)
			if err != nil {
				return size, err
			}
			size += int64(len(text))
			tag = answer.Header.Get("ETag")
		}
		if _, answer, err := l.ask(ctx, http.MethodGet, path, "", "If-None-Match", tag); err != nil || answer.StatusCode != http.StatusNotModified {
			return size, errors.Join(err, fmt.Errorf("%s has changed", path))
		}
	}
	for cursor, more := "", true; more; more = cursor != "" {
		params := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
		if cursor != "" {
			params += fmt.Sprintf(`,"cursor":%q`, cursor)
		}
		text, _, err := l.ask(ctx, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+params+`}}`, "Content-Type", "application/json",
			"Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list")
		if err != nil {
			return size, err
		}
		size += int64(len(text))
		var page struct {
			Result struct {
				Tools      []json.RawMessage
				NextCursor string
			}
		}
		if err := json.Unmarshal(text, &page); err != nil {
			return size, fmt.Errorf("a page is %.100q: %w", text, err)
		}
		if len(page.Result.Tools) == 0 {
			return size, fmt.Errorf("a page has no tools: %.100q", text)
		}
		cursor = page.Result.NextCursor
	}
	return size, nil
}

func (l lister) ask(ctx context.Context, method, path, body string, headers ...string) ([]byte, *http.Response, error) {
	q, err := http.NewRequestWithContext(ctx, method, l.url+path, strings.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	q.Header.Set("Authorization", "Bearer "+l.token)
	for i := 0; i < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultTransport.RoundTrip(q)
	if err != nil {
		return nil, nil, err
	}
	text, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err == nil && answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusNotModified {
		err = fmt.Errorf("%s is answered with %d %.200s", path, answer.StatusCode, text)
	}
	return text, answer, err
}
