package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/measure"
)

// A row has the outcomes of the calls during a fault.
type row struct {
	name             string
	plain, write     told
	changed, refused int // by the operator
	p99, slowest     time.Duration
	cut              string // the answers of a server that was cut off
	lasted, agreed   time.Duration
	sums             []string // of trials
	wrong            []string
}

// run makes all faults, one after another.
func (w *world) run(ctx context.Context) (rows []row, err error) {
	all := w.faults()
	var every []counted
	maybe := 0
	for i, f := range append([]fault{{name: "nothing", cut: -1}}, all...) {
		if ctx.Err() != nil {
			return rows, context.Cause(ctx)
		}
		fmt.Fprintf(w.log, "# %s %s\n", time.Now().Format(time.TimeOnly), f.name)
		r, l, err := w.during(ctx, f, fmt.Sprint("f", i))
		rows = append(rows, r)
		if err != nil {
			return rows, fmt.Errorf("%s: %w", f.name, err)
		}
		every = append(every, l.counted...)
		maybe += l.maybe
	}
	last := &rows[len(rows)-1]
	last.wrong = append(last.wrong, counts(every)...)
	asks := &http.Client{}
	defer asks.CloseIdleConnections()
	for _, r := range w.replicas {
		a := call(ctx, asks, *r.url.Load(), w.token, "read", map[string]any{"key": counter})
		n, err := strconv.Atoi(unquote(a.body))
		if err != nil || n < len(every) || n > len(every)+maybe {
			last.wrong = append(last.wrong, fmt.Sprintf("%s: the counter is %.200s, after %d counts that were answered and %d that may have been made", r.name, a.body, len(every), maybe))
		}
	}
	return rows, nil
}

func unquote(text string) string {
	if plain, err := strconv.Unquote(text); err == nil {
		return plain
	}
	return text
}

// during makes one fault while callers and an operator continue, and checks their answers.
func (w *world) during(ctx context.Context, f fault, prefix string) (r row, l *ledger, err error) {
	r.name = f.name
	l = newLedger()
	w.operator.mu.Lock()
	w.operator.changed, w.operator.refused, w.operator.why = 0, 0, map[string]int{}
	w.operator.mu.Unlock()
	calling, rest := context.WithCancel(ctx)
	var all sync.WaitGroup
	c := &callers{w.balancer.front.URL, w.token, l, prefix}
	for i := range workers {
		all.Go(func() { c.work(calling, i) })
	}
	all.Go(func() { w.operator.operate(calling, w.replicas) })
	tried := w.current
	for _, t := range w.beside {
		if tried {
			all.Go(func() { t.load(calling, f, l) })
		}
	}
	var asked told
	if f.cut >= 0 {
		all.Go(func() { asked = w.askCut(calling, f.cut) })
	}
	begun := time.Now()
	err = w.fail(ctx, f, l)
	r.lasted = time.Since(begun)
	if err == nil {
		healed := time.Now()
		err = w.agreed(ctx)
		r.agreed = time.Since(healed)
	}
	rest()
	all.Wait()
	l.settle()
	if err == nil {
		r.wrong = append(l.wrong, w.verify(ctx, l, prefix)...)
		for _, t := range w.beside {
			if tried {
				sum, wrong := t.verify(ctx)
				r.sums, r.wrong = append(r.sums, sum), append(r.wrong, wrong...)
			}
		}
	} else {
		r.wrong = append(l.wrong, err.Error())
	}
	r.plain, r.write = *l.kinds["plain"], *l.kinds["write"]
	r.changed, r.refused = w.operator.changed, w.operator.refused
	for why, n := range w.operator.why {
		fmt.Fprintf(w.log, "#   %d changes were refused: %s\n", n, why)
	}
	for _, wrong := range r.wrong {
		fmt.Fprintf(w.log, "#   wrong: %s\n", wrong)
	}
	if len(l.slow) > 0 {
		r.p99 = measure.Percentile(l.slow, 99)
	}
	r.slowest = l.late
	if f.cut >= 0 {
		r.cut = fmt.Sprintf("%d of %d", asked.right, asked.right+asked.failed)
	}
	if ctx.Err() != nil {
		return r, l, context.Cause(ctx)
	}
	return r, l, nil
}

// fail makes a fault, waits, and repairs it.
func (w *world) fail(ctx context.Context, f fault, l *ledger) error {
	if f.make != nil {
		if err := f.make(ctx, w, l); err != nil {
			return err
		}
	}
	select {
	case <-ctx.Done():
	case <-time.After(w.lasts(f)):
	}
	if f.cut >= 0 && w.lasts(f) > knownAfter {
		w.saysCut(ctx, f.cut, l)
	}
	if f.heal == nil {
		return nil
	}
	return f.heal(ctx, w)
}

// knownAfter is how long a server takes to notice that it is cut off.
const knownAfter = 5 * time.Second

// saysCut checks that a server that is cut off says so in the places that docs/operations.md names.
func (w *world) saysCut(ctx context.Context, i int, l *ledger) {
	r := w.replicas[i]
	text, status := "", 0
	got, err := http.Get(*r.url.Load() + "/readyz")
	if err == nil {
		var body []byte
		body, err = io.ReadAll(got.Body)
		got.Body.Close()
		text, status = string(body), got.StatusCode
	}
	config := filepath.Join(r.options.Directory, "toolsrv.toml")
	said, failed := exec.CommandContext(ctx, r.options.Binary, "status", "--config", config).CombinedOutput()
	ready, notReady := exec.CommandContext(ctx, r.options.Binary, "ready", *r.url.Load()).CombinedOutput()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil || status != http.StatusOK || !strings.Contains(text, `"state":"cut off"`) {
		l.wrongly("%s is cut off, and /readyz answers %d %.200s, %v", r.name, status, text, err)
	}
	if failed != nil || !strings.Contains(string(said), "cut off") {
		l.wrongly("%s is cut off, and toolsrv status says %.500s, %v", r.name, said, failed)
	}
	if notReady != nil {
		l.wrongly("%s is cut off, and toolsrv ready says %.300s, %v", r.name, ready, notReady)
	}
}

// askCut sends requests that need no state to a server that is cut off, and bypasses the balancer.
func (w *world) askCut(ctx context.Context, i int) (got told) {
	asks := &http.Client{Transport: &http.Transport{}}
	defer asks.CloseIdleConnections()
	for ctx.Err() == nil {
		a := call(ctx, asks, *w.replicas[i].url.Load(), w.token, "add", map[string]any{"a": 1, "b": 2})
		switch {
		case ctx.Err() != nil:
		case a.status == http.StatusOK && a.body == "3":
			got.right++
		default:
			got.failed++
		}
		time.Sleep(20 * time.Millisecond)
	}
	return got
}

// brief stores a key for a minute through one server, makes something happen, and reports an error if a server does not have the key a few seconds
// later.
func (w *world) brief(ctx context.Context, l *ledger, then func() error) error {
	asks := &http.Client{}
	defer asks.CloseIdleConnections()
	const key = "brief"
	a := call(ctx, asks, *w.replicas[0].url.Load(), w.token, "brief", map[string]any{"key": key, "seconds": 60})
	if a.status != http.StatusOK {
		return fmt.Errorf("keep a key for a minute: %d %.200s %w", a.status, a.body, errors.Join(a.err))
	}
	if then != nil {
		if err := then(); err != nil {
			return err
		}
	}
	time.Sleep(5 * time.Second) // time in which expired keys are deleted
	for _, r := range w.replicas {
		a := call(ctx, asks, *r.url.Load(), w.token, "read", map[string]any{"key": key})
		if a.err != nil || unquote(a.body) != key {
			l.mu.Lock()
			l.wrongly("%s does not have a key that is kept for a minute after 5 s: %d %.200s", r.name, a.status, a.body)
			l.mu.Unlock()
		}
	}
	return nil
}

// table prints the table.
func table(out io.Writer, rows []row) {
	fmt.Fprintln(out, "| what failed | for | calls answered | lost, of a killed server | writes answered | refused | lost | changes by operators | refused | p99, slowest | answered while cut off | all agreed after | wrong |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, r := range rows {
		fmt.Fprintf(out, "| %s | %v | %d | %d | %d | %d | %d | %d | %d | %v, %v | %s | %v | %d |\n", r.name, r.lasted.Round(100*time.Millisecond),
			r.plain.right, r.plain.lost, r.write.right, r.write.refused, r.write.lost, r.changed, r.refused,
			r.p99.Round(time.Millisecond), r.slowest.Round(time.Millisecond), r.cut, r.agreed.Round(time.Millisecond), len(r.wrong))
	}
}
