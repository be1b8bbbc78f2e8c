package invoker

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolsrv/toolsrv/internal/rates"
	"github.com/toolsrv/toolsrv/internal/schemas"
	"github.com/toolsrv/toolsrv/internal/turns"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// TestPlaces makes modules wait for places: they take turns, even if one of them has more calls waiting than another.
// Proves: Limits hold, one by one and in sum
func TestPlaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, by := turns.New[rates.Caller, string](1), rates.Caller{}
		var mu sync.Mutex
		var got []string
		enter := func(ctx context.Context, module string, call *wasmtools.Call) {
			err := enter(ctx, p, by, module, call)
			mu.Lock()
			defer mu.Unlock()
			if failed, ok := errors.AsType[*wasmtools.Error](err); ok {
				module += " " + string(failed.Code)
			}
			got = append(got, module)
		}
		expect := func(want string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if now := strings.Join(got, ", "); now != want {
				t.Errorf("got %q, want %q", now, want)
			}
			got = nil
		}
		enter(t.Context(), "a", &wasmtools.Call{})
		expect("a")
		wait := func(ctx context.Context, module string, call *wasmtools.Call) {
			go enter(ctx, module, call)
			synctest.Wait()
		}
		for range 3 {
			wait(t.Context(), "a", &wasmtools.Call{})
		}
		gone, cancel := context.WithCancel(t.Context())
		wait(gone, "b", &wasmtools.Call{})
		wait(t.Context(), "c", &wasmtools.Call{})
		wait(t.Context(), "inner", &wasmtools.Call{Outer: outer(time.Now().Add(time.Second))})
		cancel()
		expect("b cancelled")
		last := "a"
		for _, want := range []string{"a", "c"} {
			p.Leave(by, last)
			expect(want)
			last = want
		}
		time.Sleep(2 * time.Second)
		expect("inner overloaded")
		p.Leave(by, last)
		expect("a")
		time.Sleep(patience)
		expect("a overloaded")
		p.Leave(by, "a")
		if p.Free() != 1 || p.Waiting() != 0 {
			t.Errorf("in the end %d places are free, and %d wait", p.Free(), p.Waiting())
		}
	})
}

// outer is an outer call with a deadline.
type outer time.Time

func (outer) Depth() int        { return 0 }
func (o outer) Ends() time.Time { return time.Time(o) }

// counting wraps a schema. It counts the checks that run at a time, and holds each until it is released.
type counting struct {
	*schemas.Schema
	mu            sync.Mutex
	inside, most  int
	entered, free chan struct{}
}

func (c *counting) Validate(body []byte) ([]byte, error) {
	count := func(n int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.inside += n
		c.most = max(c.most, c.inside)
	}
	count(1)
	defer count(-1)
	c.entered <- struct{}{}
	<-c.free
	return c.Schema.Validate(body)
}

// TestDearValidations has a hostile module whose schema takes long to check small bodies: few are checked at a time, and another module's calls still
// work.
// Proves: Limits hold, one by one and in sum
func TestDearValidations(t *testing.T) {
	t.Parallel()
	var alternatives strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&alternatives, `,{"const":%d}`, i)
	}
	costly := &counting{Schema: schemas.MustCompile(`{"type":"object","properties":{"a":{"type":"array","items":{"anyOf":[` + alternatives.String()[1:] + `]}}}}`)}
	const callers = 16
	costly.entered, costly.free = make(chan struct{}, callers), make(chan struct{})
	body := []byte(`{"a":[` + strings.Repeat("1999,", 40) + `1]}`)
	v := New(Options{})
	call := func(name string, s checker, body []byte) error {
		_, err := v.validator.check(t.Context(), s, name, &wasmtools.Call{Arguments: body})
		return err
	}
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			if err := call("costly", costly, body); err != nil {
				t.Error(err)
			}
		})
	}
	for range runtime.GOMAXPROCS(0) {
		<-costly.entered
	}
	plain := schemas.MustCompile(`{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}}}}`)
	for _, n := range []int{1, 100, 10_000} { // checked without a place, or in a place for brief checks
		if err := call("plain", plain, []byte(`{"a":[`+strings.Repeat("1999,", n)+`1]}`)); err != nil {
			t.Error(err)
		}
	}
	close(costly.free)
	wg.Wait()
	if costly.most > runtime.GOMAXPROCS(0) {
		t.Errorf("%d costly checks at a time, want one for each processor at most", costly.most)
	}
}

// TestFilledInCounts has a schema whose defaults turn a small body into a large one: the memory counts as if a client had sent it.
// Proves: Limits hold, one by one and in sum
func TestFilledInCounts(t *testing.T) {
	t.Parallel()
	v := New(Options{Memory: 200 << 10})
	large := schemas.MustCompile(`{"type":"object","properties":{"a":{"type":"string","default":"` + strings.Repeat("x", 300<<10) + `"}}}`)
	var second error
	run := func(ctx context.Context, c *wasmtools.Call) ([]byte, error) {
		if len(c.Arguments) > 300<<10 {
			other := RouteTo(&wasmtools.Tool{Name: "other", Parameters: schema.MustCompile(`{"type":"object"}`), Caller: wasmtools.CallerFunc(
				func(context.Context, *wasmtools.Call) ([]byte, error) { return []byte("1"), nil })})
			_, second = v.Call(ctx, other, &wasmtools.Call{Arguments: []byte("{" + strings.Repeat(" ", 100<<10) + "}"), Principal: wasmtools.Everybody()})
		}
		return []byte("1"), nil
	}
	call := func() error {
		_, err := v.Call(t.Context(), RouteTo(&wasmtools.Tool{Name: "large", Parameters: (*schema.Schema)(large), Caller: wasmtools.CallerFunc(run)}), &wasmtools.Call{Principal: wasmtools.Everybody()})
		return err
	}
	for range 2 { // twice, since the memory must be given back
		if err := call(); err != nil {
			t.Fatal(err)
		}
	}
	if failed, ok := errors.AsType[*wasmtools.Error](second); !ok || failed.Code != wasmtools.CodeOverloaded {
		t.Errorf("a call beside it: got %v, want overloaded", second)
	}
}

// TestDearPlaces: with little memory, few expensive checks run at a time, since each may take a hundred times the memory of its arguments.
// Proves: Limits hold, one by one and in sum
func TestDearPlaces(t *testing.T) {
	t.Parallel()
	all := runtime.GOMAXPROCS(0)
	for memory, want := range map[int64]int{1: 1, defaultMemory / int64(all): 1, defaultMemory: all, 2 * defaultMemory: all} {
		if got := newValidator(memory, nil).costly.Free(); got != want {
			t.Errorf("with %d bytes: got %d places, want %d", memory, got, want)
		}
	}
}

// TestRoom checks that a check reserves the memory that it needs before it begins, and gives it back. A check that gets none fails, and small checks
// reserve none.
// Proves: Limits hold, one by one and in sum
func TestRoom(t *testing.T) {
	t.Parallel()
	const never = 64 << 20
	plain := schemas.MustCompile(`{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}}}}`)
	filled := schemas.MustCompile(`{"type":"object","properties":{"a":{"type":"array","items":{"properties":{"b":{"default":[1,2,3,4]}}}}}}`)
	numbers := func(n int) string { return `{"a":[` + strings.Repeat("1,", n) + `1]}` }
	for _, test := range []struct {
		name   string
		schema *schemas.Schema
		body   string
		full   bool
		inside bool
		asks   int // how often the check requests memory
		code   wasmtools.Code
	}{
		{name: "small", schema: plain, body: numbers(1000), full: true},
		{name: "as much as a place has", schema: plain, body: numbers(10_000), full: true},
		{name: "much text", schema: plain, body: `{"b":"` + strings.Repeat(",", 100<<10) + `"}`, full: true},
		{name: "many values", schema: plain, body: numbers(200_000), asks: 1},
		{name: "many values that do not fit", schema: plain, body: `{"b":[` + strings.Repeat(`"",`, 200_000) + `""],"a":""}`, asks: 1, code: wasmtools.CodeInvalidArguments},
		{name: "many that are filled in", schema: filled, body: `{"a":[` + strings.Repeat("{},", 20_000) + `{}]}`, asks: 4},
		{name: "more than there is", schema: plain, body: numbers(1 << 20), code: wasmtools.CodeInputTooLarge},
		{name: "no room for a while", schema: plain, body: numbers(200_000), full: true, code: wasmtools.CodeOverloaded},
		{name: "no room inside a call", schema: plain, body: numbers(200_000), full: true, inside: true, code: wasmtools.CodeOverloaded},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var held int64
				asks := 0
				v := New(Options{Memory: 1 << 20, Room: func(ctx context.Context, bytes int64) (func(), error) {
					switch {
					case bytes > never:
						return nil, ErrTooMuch
					case test.full:
						<-ctx.Done()
						return nil, context.Cause(ctx)
					}
					asks++
					held += bytes
					return func() { held -= bytes }, nil
				}})
				run := func(context.Context, *wasmtools.Call) ([]byte, error) {
					if held != 0 {
						t.Errorf("%d bytes are still held for a check that has ended", held)
					}
					return []byte("1"), nil
				}
				tool := &wasmtools.Tool{Name: "x", MaxInput: 4 << 20, Parameters: (*schema.Schema)(test.schema), Caller: wasmtools.CallerFunc(run)}
				call := &wasmtools.Call{Arguments: []byte(test.body), Principal: wasmtools.Everybody()}
				if test.inside {
					call.Outer = outer(time.Now().Add(time.Hour))
				}
				begun := time.Now()
				_, err := v.Call(t.Context(), RouteTo(tool), call)
				code := wasmtools.Code("")
				if failed, ok := errors.AsType[*wasmtools.Error](err); ok {
					code = failed.Code
				}
				if code != test.code || asks != test.asks || held != 0 {
					t.Errorf("got %v, asked for room %d times, and %d bytes are held; want %q and %d times", err, asks, held, test.code, test.asks)
				}
				waits := test.code == wasmtools.CodeOverloaded && !test.inside
				if took := time.Since(begun); waits && took != patience || !waits && took != 0 {
					t.Errorf("it waited for %v", took)
				}
			})
		})
	}
}
