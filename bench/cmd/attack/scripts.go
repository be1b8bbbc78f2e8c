package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/service"
	"github.com/toolsrv/toolsrv/wasmtools/script/engine"
)

// A language is how a script is written that answers with its own number.
type language struct{ engine, ending, source string }

var languages = []language{
	{"python", ".py", `from toolsrv import tool

@tool
def t%[1]d(number: int) -> int:
    """Return a number of this tool's."""
    return %[1]d
`},
	{"javascript", ".js", `import { tool } from "toolsrv";

export const t%[1]d = tool({
  description: "Return a number of this tool's.",
  parameters: { type: "object", properties: { number: { type: "integer" } } },
  run: () => %[1]d,
});
`},
}

// fillScripts writes n scripts in the first of some languages whose engine this binary carries, which is the server's if both were built
// together.
func (a *arena) fillScripts(n int, languages []language) error {
	folder := filepath.Join(service.Tools(a.directory), namespace)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	for _, l := range languages {
		if _, err := engine.Carried().Open(l.engine); errors.Is(err, engine.ErrMissing) {
			continue
		}
		a.tell("%d scripts in %s", n, l.engine)
		for i := range n {
			if err := os.WriteFile(filepath.Join(folder, fmt.Sprint("t", i, l.ending)), fmt.Appendf(nil, l.source, i), 0o600); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("%w: no interpreter is carried: make engines builds them", errSkipped)
}

// withScripts are keys of [tools], where the further tables of a configuration begin.
const withScripts = "scripts = true\n"

func attackScripts(ctx context.Context, a *arena) error {
	const scripts, each = 100, 15 * time.Second
	if err := a.fillScripts(scripts, languages); err != nil {
		return err
	}
	begin := time.Now()
	s, err := a.start(ctx, service.Options{Server: `memory = "256MiB"`, Rest: withScripts})
	if err != nil {
		return err
	}
	a.tell("ready after %.1f s", time.Since(begin).Seconds())
	var rates []float64
	for _, clients := range []int{1, 16, 64} {
		end := time.Now().Add(each)
		got := load{clients: clients, output: func(i int) string { return fmt.Sprint(i % scripts) }, path: func(i int) (string, bool) {
			return path(i % scripts), time.Now().Before(end)
		}}.run(ctx, s)
		rates = append(rates, float64(got.served)/each.Seconds())
		a.tell("%d connections: %.0f answers a second, %v", clients, rates[len(rates)-1], &got)
		if err := got.judge(s); err != nil {
			return err
		}
		if got.refused > 0 {
			return fmt.Errorf("%d calls were refused, though each could have had its turn", got.refused)
		}
	}
	if rates[1] < rates[0]/2 || rates[2] < rates[0]/2 {
		return errors.New("several connections get less than half as much as one")
	}
	return nil
}
