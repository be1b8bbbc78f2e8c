package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/service"
)

// A language is a language in which the attack writes scripts. Each script answers with its own number.
type language struct{ name, ending, source string }

var (
	python = language{"python", ".py", `from toolsrv import tool

@tool
def t%[1]d(number: int) -> int:
    """Return this tool's number."""
    return %[1]d
`}
	javascript = language{"javascript", ".js", `import { tool } from "toolsrv";

export const t%[1]d = tool({
  description: "Return this tool's number.",
  parameters: { type: "object", properties: { number: { type: "integer" } } },
  run: () => %[1]d,
});
`}
)

// fillScripts writes n scripts in a language.
func fillScripts(a *arena, n int, l language) error {
	folder := filepath.Join(service.Tools(a.directory), namespace)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	a.tell("%d scripts in %s", n, l.name)
	for i := range n {
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprint("t", i, l.ending)), fmt.Appendf(nil, l.source, i), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// withScripts is a line of the table [tools], after which further tables can follow.
const withScripts = "scripts = true\n"

func attackScripts(ctx context.Context, a *arena) error { return readScripts(ctx, a, "256MiB", 2) }

func attackScripts512(ctx context.Context, a *arena) error { return readScripts(ctx, a, "512MiB", 20) }

func attackScripts1024(ctx context.Context, a *arena) error { return readScripts(ctx, a, "1GiB", 20) }

// readScripts has many scripts called in turn, first by one client and then by many, on a server with little memory for all scripts. One client
// finds all instances idle, but many clients make each other's instances start again. Still, they must together get at least a given fraction of the
// answers that one client gets.
func readScripts(ctx context.Context, a *arena, memory string, part float64) error {
	const scripts, each = 100, 15 * time.Second
	if err := fillScripts(a, scripts, python); err != nil {
		return err
	}
	begin := time.Now()
	s, err := a.start(ctx, service.Options{Server: fmt.Sprintf("memory = %q", memory), Rest: withScripts})
	if err != nil {
		return err
	}
	a.tell("ready after %.1f s", time.Since(begin).Seconds())
	var rates []float64
	for _, clients := range []int{1, 16, 64} {
		before, err := s.Processor()
		if err != nil {
			return errors.Join(s.Died(), err)
		}
		end := time.Now().Add(each)
		got := load{clients: clients, output: func(i int) string { return fmt.Sprint(i % scripts) }, path: func(i int) (string, bool) {
			return path(i % scripts), time.Now().Before(end)
		}}.run(ctx, s)
		rates = append(rates, float64(got.served)/each.Seconds())
		after, err := s.Processor()
		if err != nil {
			return errors.Join(s.Died(), err)
		}
		cost := float64((after - before).Milliseconds()) / float64(max(1, got.served))
		a.tell("%d connections: %.0f answers a second at %.1f ms of processor time, %v", clients, rates[len(rates)-1], cost, &got)
		if err := got.judge(s); err != nil {
			return err
		}
		if got.refused > 0 {
			return fmt.Errorf("%d calls were refused, though each could have had its turn", got.refused)
		}
	}
	if rates[1] < rates[0]/part || rates[2] < rates[0]/part {
		return fmt.Errorf("several connections get less than 1/%v of what one gets", part)
	}
	return nil
}

// attackScriptsMany compares how long starting all scripts takes with little memory and with much. A ratio is the same on all machines.
func attackScriptsMany(ctx context.Context, a *arena) error {
	const scripts = 150
	if err := fillScripts(a, scripts, python); err != nil {
		return err
	}
	var took [2]time.Duration
	for i, memory := range []string{"2GiB", "256MiB"} {
		var first time.Time
		added, all := 0, make(chan struct{})
		each := func(line []byte) {
			if !bytes.Contains(line, []byte("tool added")) {
				return
			}
			if added++; added == 1 {
				first = time.Now()
			}
			if added == scripts {
				took[i] = time.Since(first)
				close(all)
			}
		}
		s, err := a.start(ctx, service.Options{Server: fmt.Sprintf("memory = %q", memory), Rest: withScripts, Each: each})
		if err != nil {
			return err
		}
		select {
		case <-all:
		case <-ctx.Done():
			return errors.Join(s.Died(), fmt.Errorf("with %s not all scripts were started: %w", memory, ctx.Err()))
		}
		processor, err := s.Processor()
		a.tell("with %s in %.1f s, and %.1f s of processor time since the start", memory, took[i].Seconds(), processor.Seconds())
		// With the cache, the next server would start none of the scripts.
		if err = errors.Join(err, s.Stop(20*time.Second), os.RemoveAll(service.Cache(a.directory))); err != nil {
			return err
		}
		a.running = nil
	}
	if took[1] > 2*took[0] {
		return fmt.Errorf("they took %v, and with more memory %v", took[1], took[0])
	}
	return nil
}
