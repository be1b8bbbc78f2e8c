package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
	"github.com/toolsrv/toolsrv/bench/internal/principals"
	"github.com/toolsrv/toolsrv/bench/internal/service"
	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/client"
	"github.com/toolsrv/toolsrv/internal/admin/socket"
)

// manyPrincipals prints the costs of a server with one tool and many tokens: a row for each number of tokens.
func manyPrincipals(ctx context.Context, server string, guests guest.Shelf, numbers string, out io.Writer) error {
	small, err := guests.Read(guest.Small)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "| tokens | state | ready | resident | KiB a token | a token is made: p50 | a call: p50 |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|")
	first, firstTokens := int64(0), 0
	for _, text := range strings.Split(numbers, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("-principals: %q is not a number of tokens", text)
		}
		p, err := measurePrincipals(ctx, server, small, n)
		if err != nil {
			return fmt.Errorf("%d tokens: %w", n, err)
		}
		each := "–"
		if firstTokens == 0 {
			first, firstTokens = p.resident, n
		} else {
			each = fmt.Sprintf("%.2f", float64(p.resident-first)/1024/float64(n-firstTokens))
		}
		fmt.Fprintf(out, "| %d | %.1f MiB | %.2f s | %d MiB | %s | %.1f ms | %.3f ms |\n", n, float64(p.file)/(1<<20), p.ready.Seconds(), p.resident>>20, each, p.made.Seconds()*1e3, p.called.Seconds()*1e3)
	}
	return nil
}

// taken has the measured costs of a server with a number of tokens.
type taken struct {
	file, resident      int64 // bytes
	ready, made, called time.Duration
}

func measurePrincipals(ctx context.Context, server string, module []byte, n int) (p taken, err error) {
	directory, err := os.MkdirTemp("", "toolsrv-scale-")
	if err != nil {
		return p, err
	}
	defer os.RemoveAll(directory)
	state := filepath.Join(directory, "state")
	secret, err := principals.Fill(ctx, state, n)
	if err != nil {
		return p, err
	}
	if module, err = guest.Describe(module, guest.Parameters, "add0"); err != nil {
		return p, err
	}
	err = errors.Join(os.Mkdir(service.Tools(directory), 0o700), os.WriteFile(filepath.Join(service.Tools(directory), "add0.wasm"), module, 0o600))
	if err != nil {
		return p, err
	}
	began := time.Now()
	s, err := service.Start(ctx, service.Options{Binary: server, Directory: directory, Rest: "[state]\ndirectory = \"state\"\n[auth]\nrequired = true"})
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, s.Stop(time.Minute)) }()
	if err := s.Ready(ctx); err != nil {
		return p, err
	}
	p.ready = time.Since(began)
	if _, err := s.Quiet(ctx); err != nil {
		return p, err
	}
	if p.resident, _, err = s.Resident(); err != nil {
		return p, err
	}
	file, err := os.Stat(filepath.Join(state, "state.db"))
	if err != nil {
		return p, err
	}
	p.file = file.Size()

	over, err := client.OverSocket(filepath.Join(state, socket.Name))
	if err != nil {
		return p, err
	}
	defer over.Close()
	var made, called []time.Duration
	for i := range 20 {
		began := time.Now()
		if _, err := over.Do(ctx, "tokens add", admin.NewToken{Name: fmt.Sprint("new-", i), Scopes: []string{"bench/*"}}, ""); err != nil {
			return p, err
		}
		made = append(made, time.Since(began))
	}
	for range 2000 {
		began := time.Now()
		if err := callWith(ctx, s.URL, secret); err != nil {
			return p, err
		}
		called = append(called, time.Since(began))
	}
	p.made, p.called = measure.Percentile(made, 50), measure.Percentile(called, 50)
	return p, s.Died()
}

// callWith calls the tool with a token.
func callWith(ctx context.Context, url, secret string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/bench/add0", strings.NewReader(guest.Input))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+secret)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK || string(text) != guest.Output {
		return fmt.Errorf("the tool answered %s: %.200s, %w", answer.Status, text, err)
	}
	return nil
}
