package rates_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/toolsrv/toolsrv/internal/rates"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A client has an address, and no credentials.
type client struct{ address netip.Addr }

func (c *client) Now() (*wasmtools.Generation, *wasmtools.Principal, error) {
	return nil, wasmtools.Everybody(), nil
}
func (c *client) Finally(f func())    {}
func (c *client) Address() netip.Addr { return c.address }

// A configured is a configuration with rates.
type configured rates.Settings

func (c *configured) CallRates() *rates.Settings { return (*rates.Settings)(c) }

func generation(t testing.TB, s *rates.Settings) *wasmtools.Generation {
	t.Helper()
	table, err := wasmtools.NewRouteTable()
	if err != nil {
		t.Fatal(err)
	}
	if err := table.Configure(nil, nil, wasmtools.Configuration{Value: (*configured)(s)}); err != nil {
		t.Fatal(err)
	}
	return table.Current()
}

func parse(t testing.TB, text string, burst, concurrent int) wasmtools.Rate {
	t.Helper()
	r, err := rates.Text{Rate: text, Burst: burst, Concurrent: concurrent}.Parse()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func principal(t testing.TB, name string, r wasmtools.Rate, within *wasmtools.Principal) *wasmtools.Principal {
	t.Helper()
	p, err := wasmtools.NewPrincipal(name, wasmtools.OriginToken, "*")
	if err != nil {
		t.Fatal(err)
	}
	return p.WithRate(r, within)
}

// taken makes n calls, each of which ends at once, and returns how many of them were let through.
func taken(l *rates.Limiter, call *wasmtools.Call, n int) (may int) {
	for range n {
		if ticket, err := l.Begin(call); err == nil {
			ticket.End()
			may++
		}
	}
	return may
}

// TestMillionAddresses lets one address send a flood of calls while a million others come, some of which make many calls, too. The flood's used-up
// calls are not forgotten, nobody else is refused, and memory stays bounded.
func TestMillionAddresses(t *testing.T) {
	if testing.Short() {
		t.Skip("makes a million calls: not with -short")
	}
	for _, test := range []struct {
		rate      wasmtools.Rate
		addresses int
	}{{parse(t, "10/s", 10, 0), 1_000_000}, {parse(t, "1/s", 0, 0), 200_000}, {parse(t, "100/h", 5, 3), 200_000}} {
		r := test.rate
		if testkit.Race(t) { // there is one goroutine; the race detector only makes the test take twenty times as long
			test.addresses /= 50
		}
		synctest.Test(t, func(t *testing.T) {
			g := generation(t, &rates.Settings{Anonymous: r})
			l := rates.New()
			of := func(a netip.Addr) *wasmtools.Call {
				return &wasmtools.Call{Principal: wasmtools.Everybody(), Generation: g, Client: &client{a}}
			}
			flooder, c := of(netip.MustParseAddr("203.0.113.7")), &client{}
			other := &wasmtools.Call{Principal: wasmtools.Everybody(), Generation: g, Client: c}
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			begun, may, refused := time.Now(), 0, 0
			for n := range test.addresses {
				var raw [16]byte
				raw[0] = 0x20
				binary.BigEndian.PutUint64(raw[8:], rand.Uint64()) // the lower half of the address does not matter
				binary.BigEndian.PutUint32(raw[2:], uint32(n))
				c.address = netip.AddrFrom16(raw)
				calls := 1
				if n%10 == 0 { // these addresses flood, too
					calls = 12
				}
				if got := taken(l, other, calls); got == 0 {
					refused++
				}
				may += taken(l, flooder, 1)
				if n%100 == 0 {
					time.Sleep(time.Millisecond)
				}
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			most := rates.Allowed(r, time.Since(begun))
			if may > most {
				t.Errorf("%s: the address that floods made %d calls in %v, want %d at most", rates.Describe(r), may, time.Since(begun), most)
			}
			if refused > 0 {
				t.Errorf("%s: %d of %d addresses could make no call", rates.Describe(r), refused, test.addresses)
			}
			if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 6<<20 {
				t.Errorf("%d bytes are held, want 5 MiB at most", grown)
			}
			if _, known := l.Known(); known > rates.Most {
				t.Errorf("%d addresses are known", known)
			}
			runtime.KeepAlive(l)
		})
	}
}

// TestReference makes calls at random times, and checks that nearly the same calls are allowed as by golang.org/x/time/rate.
func TestReference(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text  string
		burst int
		every rate.Limit
	}{{"10/s", 10, 10}, {"1/s", 1, 1}, {"100/min", 7, 100. / 60}, {"1000/s", 50, 1000}, {"3/h", 3, 3. / 3600}} {
		calls := 20_000
		if testkit.Race(t) { // as above
			calls /= 20
		}
		synctest.Test(t, func(t *testing.T) {
			r := parse(t, test.text, test.burst, 0)
			l, want := rates.New(), rate.NewLimiter(test.every, test.burst)
			call := &wasmtools.Call{Principal: principal(t, "ci", r, nil)}
			random := rand.New(rand.NewPCG(1, 2))
			mean := float64(time.Second) / float64(test.every)
			differ := 0
			for range calls {
				time.Sleep(time.Duration(random.ExpFloat64() * mean * 0.7))
				if got, may := taken(l, call, 1) == 1, want.AllowN(time.Now(), 1); got != may {
					differ++ // package rate uses floating point, so the two may differ about a call that is a nanosecond early
				}
			}
			if differ > 20 {
				t.Errorf("%s: %d of %d calls differ", test.text, differ, calls)
			}
		})
	}
}

// TestShared makes calls with a token and narrower tokens that were made from it: all calls count for the first token.
func TestShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := rates.New()
		parent := principal(t, "ci", parse(t, "10/s", 10, 0), nil)
		var children []*wasmtools.Call
		for n := range 20 {
			children = append(children, &wasmtools.Call{Principal: principal(t, fmt.Sprint("ci/", n), wasmtools.Rate{}, parent)})
		}
		total := 0
		for _, c := range children {
			total += taken(l, c, 10)
		}
		if total += taken(l, &wasmtools.Call{Principal: parent}, 10); total != 10 {
			t.Errorf("a token and 20 narrower ones made %d calls, want 10", total)
		}
		time.Sleep(time.Second)
		slow := &wasmtools.Call{Principal: principal(t, "ci/slow", parse(t, "2/min", 0, 0), parent)}
		if got := taken(l, slow, 100); got != 2 {
			t.Errorf("the token with the lower rate made %d calls, want 2", got)
		}
		if got := taken(l, children[0], 100); got != 8 { // calls that the lower rate refused are not counted for the other tokens
			t.Errorf("another token made %d calls, want 8", got)
		}
		// If the parent has no rate, the default is shared as well.
		g := generation(t, &rates.Settings{Default: parse(t, "5/s", 0, 0)})
		bare := principal(t, "bare", wasmtools.Rate{}, nil)
		total = taken(l, &wasmtools.Call{Principal: bare, Generation: g}, 9)
		total += taken(l, &wasmtools.Call{Principal: principal(t, "bare/a", wasmtools.Rate{}, bare), Generation: g}, 9)
		total += taken(l, &wasmtools.Call{Principal: principal(t, "bare/b", parse(t, "100/s", 0, 0), bare), Generation: g}, 9)
		if total != 5 {
			t.Errorf("without rates of their own they made %d calls, want 5", total)
		}
	})
}

// TestOwnRates checks that a caller's own rate only replaces those parts of the default that it sets: a limit on one thing does not free a caller of
// the others.
func TestOwnRates(t *testing.T) {
	t.Parallel()
	of := func(calls, burst, concurrent int) wasmtools.Rate {
		r := wasmtools.Rate{Calls: calls, Burst: burst, Concurrent: concurrent}
		if calls > 0 {
			r.Period = time.Minute
		}
		return r
	}
	hour := of(1, 0, 0)
	hour.Period = time.Hour
	hourOnce := hour
	hourOnce.Burst, hourOnce.Concurrent = 1, 4
	for _, test := range []struct {
		name               string
		own, default_, all wasmtools.Rate
	}{
		{"none", of(0, 0, 0), of(100, 20, 4), of(100, 20, 4)},
		{"a rate", of(1000, 0, 0), of(100, 20, 4), of(1000, 20, 4)},
		{"a slow one", hour, of(100, 20, 4), hourOnce},
		{"a rate and its burst", of(1000, 50, 0), of(100, 20, 4), of(1000, 50, 4)},
		{"running calls", of(0, 0, 9), of(100, 20, 4), of(100, 20, 9)},
		{"all of it", of(1, 2, 3), of(100, 20, 4), of(1, 2, 3)},
		{"a rate, where the default limits running calls", of(100, 0, 0), of(0, 0, 4), of(100, 0, 4)},
		{"running calls, with no default", of(0, 0, 2), of(0, 0, 0), of(0, 0, 2)},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l, s := rates.New(), &rates.Settings{Default: test.default_}
			p := principal(t, "ci", test.own, nil)
			all := l.States(p, s)
			if len(all) != 1 || all[0].Rate != test.all {
				t.Fatalf("got %+v, want %+v", all, test.all)
			}
			call := &wasmtools.Call{Principal: p, Generation: generation(t, s)}
			var tickets []rates.Ticket
			for range 200 {
				if ticket, err := l.Begin(call); err == nil {
					tickets = append(tickets, ticket)
				}
			}
			most := test.all.Concurrent
			if atOnce := cmp.Or(test.all.Burst, test.all.Calls); atOnce > 0 {
				most = min(most, atOnce)
			}
			if len(tickets) != most {
				t.Errorf("%d calls run, want %d", len(tickets), most)
			}
			for i := range tickets {
				tickets[i].End()
			}
			narrower := principal(t, "ci/x", of(0, 0, 2), p)
			if all := l.States(narrower, s); len(all) != 2 || all[0].Rate != of(0, 0, 2) {
				t.Errorf("a narrower token has the rates %+v, want its own and its maker's", all)
			}
		})
	}
}

// TestChanges changes the scopes and the rate of a principal: used-up calls stay used up.
func TestChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := rates.New()
		call := func(r wasmtools.Rate) *wasmtools.Call { return &wasmtools.Call{Principal: principal(t, "ci", r, nil)} }
		slow := parse(t, "1/h", 1, 0)
		if got := taken(l, call(slow), 5); got != 1 {
			t.Fatalf("%d calls", got)
		}
		if got := taken(l, call(slow), 5); got != 0 { // another principal of the same name
			t.Errorf("%d calls after a change, want none", got)
		}
		fast := parse(t, "10/s", 10, 0)
		if got := taken(l, call(fast), 5); got != 0 {
			t.Errorf("%d calls at once with a higher rate, want none", got)
		}
		time.Sleep(time.Second)
		if got := taken(l, call(fast), 50); got != 10 {
			t.Errorf("%d calls a second later, want 10", got)
		}
		if got := taken(l, call(parse(t, "1/h", 5, 0)), 50); got > 4 {
			t.Errorf("%d calls with a lower rate, want 4 at most", got)
		}
	})
}

// TestConcurrent keeps calls running while their rates change.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	l := rates.New()
	two := parse(t, "", 0, 2)
	parent := principal(t, "ci", two, nil)
	child := principal(t, "ci/a", parse(t, "", 0, 1), parent)
	begin := func(p *wasmtools.Principal) (*rates.Ticket, string) {
		ticket, err := l.Begin(&wasmtools.Call{Principal: p})
		if err != nil {
			return &ticket, errors.Unwrap(err).Error()
		}
		return &ticket, ""
	}
	first, why := begin(child)
	if why != "" {
		t.Fatal(why)
	}
	if _, why := begin(child); why != "ci/a has reached its limit of running calls: 1 at the same time" {
		t.Errorf("got %q", why)
	}
	second, _ := begin(parent)
	if _, why := begin(parent); !strings.HasPrefix(why, "ci has reached its limit of running") {
		t.Errorf("got %q", why)
	}
	first.End()
	first.End() // of no consequence
	third, why := begin(principal(t, "ci/b", wasmtools.Rate{}, parent))
	if why != "" {
		t.Errorf("with one running: %s", why)
	}
	if _, why := begin(child); !strings.HasPrefix(why, "ci has") {
		t.Errorf("got %q", why)
	}
	second.End()
	third.End()
	deep := parent
	for n := range 40 {
		deep = principal(t, fmt.Sprint("deep", n), two, deep)
	}
	if ticket, why := begin(deep); why != "" {
		t.Errorf("deep down: %s", why)
	} else {
		ticket.End()
	}
	for range 100 { // refused calls don't count as running
		ticket, why := begin(child)
		if why != "" {
			t.Fatal(why)
		}
		ticket.End()
	}
	if all := l.States(child, &rates.Settings{}); len(all) != 2 || all[0].Running+all[1].Running != 0 {
		t.Errorf("in the end %+v", all)
	}
}

// TestRunningIsKept fills sets of the table with callers that each have a running call: nobody is refused, no caller is forgotten, and a call that
// ends is not counted for another caller.
func TestRunningIsKept(t *testing.T) {
	t.Parallel()
	g := generation(t, &rates.Settings{Anonymous: wasmtools.Rate{Concurrent: 1}})
	l := rates.New()
	var tickets []*rates.Ticket
	call := func(n int) *wasmtools.Call {
		return &wasmtools.Call{Principal: wasmtools.Everybody(), Generation: g, Client: &client{netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})}}
	}
	const callers = 2 * rates.Most
	for n := range callers {
		ticket, err := l.Begin(call(n))
		if err != nil {
			t.Fatalf("caller %d: %v", n, err)
		}
		tickets = append(tickets, &ticket)
	}
	kept := 0
	for n := range callers {
		if _, err := l.Begin(call(n)); err != nil {
			kept++
		}
	}
	if kept < rates.Most*9/10 {
		t.Errorf("of %d callers with a running call, %d are known, want nearly %d", callers, kept, rates.Most)
	}
	for _, ticket := range tickets {
		ticket.End()
	}
	if _, known := l.Known(); known != 0 {
		t.Errorf("in the end %d callers have still used up some of their calls", known)
	}
}

// TestNobodysRate makes calls without limits.
func TestNobodysRate(t *testing.T) {
	t.Parallel()
	l := rates.New()
	g := generation(t, &rates.Settings{Default: parse(t, "1/h", 0, 1), Anonymous: parse(t, "1/h", 0, 1)})
	for name, call := range map[string]*wasmtools.Call{
		"the process":             {Principal: wasmtools.Self(), Generation: g},
		"without a configuration": {Principal: wasmtools.Everybody()},
		"without a rate":          {Principal: principal(t, "ci", wasmtools.Rate{}, nil)},
	} {
		if got := taken(l, call, 100); got != 100 {
			t.Errorf("%s: %d of 100 calls", name, got)
		}
	}
	for name, r := range map[string]wasmtools.Rate{ // from a program's own verifier, which nobody has checked
		"negative":    {Calls: -1, Period: -1, Burst: -1, Concurrent: -1},
		"no period":   {Calls: 1},
		"for ever":    {Calls: 1, Period: 1 << 62, Burst: 1 << 62, Concurrent: 1 << 62},
		"many":        {Calls: 1 << 62, Period: 1, Burst: 1 << 62},
		"a long time": {Calls: 1, Period: 1 << 62},
	} {
		if got := taken(l, &wasmtools.Call{Principal: principal(t, name, r, nil)}, 3); got == 0 {
			t.Errorf("%s: no call", name)
		}
	}
}

// TestAddresses checks which addresses share a rate.
func TestAddresses(t *testing.T) {
	t.Parallel()
	g := generation(t, &rates.Settings{Anonymous: parse(t, "1/h", 0, 0)})
	for _, test := range []struct {
		first, second string
		shared        bool
	}{
		{"10.0.0.1", "10.0.0.2", false},
		{"10.0.0.1", "10.0.0.1", true},
		{"2001:db8::1", "2001:db8::ffff:1", true},
		{"2001:db8:0:1::1", "2001:db8:0:2::1", false},
		{"2001:db8::1%eth0", "2001:db8::2%eth1", true},
		{"::1", "127.0.0.1", false},
	} {
		l := rates.New()
		call := func(a string) *wasmtools.Call {
			return &wasmtools.Call{Principal: wasmtools.Everybody(), Generation: g, Client: &client{netip.MustParseAddr(a)}}
		}
		taken(l, call(test.first), 1)
		if got := taken(l, call(test.second), 1) == 0; got != test.shared {
			t.Errorf("%s and %s: shared is %t, want %t", test.first, test.second, got, test.shared)
		}
		if same := rates.Party(call(test.first)) == rates.Party(call(test.second)); same != test.shared {
			t.Errorf("%s and %s: the same party is %t, want %t", test.first, test.second, same, test.shared)
		}
	}
	l := rates.New() // all clients without an address share one
	if got := taken(l, &wasmtools.Call{Principal: wasmtools.Everybody(), Generation: g}, 3) + taken(l, &wasmtools.Call{Principal: wasmtools.Everybody(), Generation: g, Client: &client{}}, 3); got != 1 {
		t.Errorf("clients without an address made %d calls, want 1", got)
	}
}

// TestRefusal checks the errors that refused callers get.
func TestRefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			rate                                        wasmtools.Rate
			log, client, retry, limit, policy, describe string
		}{
			{parse(t, "100/min", 2, 0), "the rate of ci is used up: 100/min, 2 at once", "The caller's rate of 100/min is used up; try again in 1 second", "1", `"rate";r=0;t=1`, `"rate";q=2;w=2`, "100/min, 2 at once"},
			{parse(t, "1/h", 0, 7), "the rate of ci is used up: 1/h, 1 at once, 7 at the same time", "The caller's rate of 1/h is used up; try again in 3600 seconds", "3600", `"rate";r=0;t=3600`, `"rate";q=1;w=3600, "concurrent";q=7;qu="concurrent-requests"`, "1/h, 1 at once, 7 at the same time"},
			{parse(t, "", 0, 3), "ci has reached its limit of running calls: 3 at the same time", "The caller has 3 calls running, which is its limit; try again when one has ended", "1", `"concurrent";r=0`, `"concurrent";q=3;qu="concurrent-requests"`, "3 at the same time"},
		} {
			l := rates.New()
			call := &wasmtools.Call{Principal: principal(t, "ci", test.rate, nil)}
			var err error
			for range 10 {
				if _, failed := l.Begin(call); failed != nil {
					err = failed
					break
				}
			}
			e, _ := errors.AsType[*wasmtools.Error](err)
			refusal, ok := errors.AsType[*rates.Refusal](err)
			if e == nil || !ok {
				t.Fatalf("%s: got %v", test.describe, err)
			}
			h := http.Header{}
			refusal.Describe(h)
			got := []string{refusal.Error(), e.Message, h.Get("Retry-After"), h.Get("RateLimit"), h.Get("RateLimit-Policy"), rates.Describe(test.rate)}
			want := []string{test.log, test.client, test.retry, test.limit, test.policy, test.describe}
			if e.Code != wasmtools.CodeRateLimited || !slices.Equal(got, want) {
				t.Errorf("got %s %q, want %q", e.Code, got, want)
			}
		}
	})
}

func TestBadRates(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text              string
		burst, concurrent int
		want              string
	}{
		{"0/s", 0, 0, "is not a rate"}, {"-1/s", 0, 0, "is not a rate"}, {"NaN/s", 0, 0, "is not a rate"}, {"inf/s", 0, 0, "is not a rate"}, {"1e3/s", 0, 0, "is not a rate"},
		{"1.5/s", 0, 0, "is not a rate"}, {"10", 0, 0, "is not a rate"}, {"10/", 0, 0, "is not a rate"}, {"/s", 0, 0, "is not a rate"}, {"10/day", 0, 0, "is not a rate"},
		{"10/S", 0, 0, "is not a rate"}, {"10 / s", 0, 0, "is not a rate"}, {"010/s", 0, 0, "is not a rate"}, {"+1/s", 0, 0, "is not a rate"}, {"10/s/s", 0, 0, "is not a rate"},
		{"1000001/s", 0, 0, "write at most 1000000/s"}, {"99999999999999999999/s", 0, 0, "is not a rate"}, {"10/s", -1, 0, "burst is -1: write"}, {"10/s", 1_000_001, 0, "burst is 1000001: write"},
		{"10/s", 0, -1, "concurrent is -1: write"}, {"10/s", 0, 1_000_001, "concurrent is 1000001: write"}, {"", 5, 0, "burst needs a rate"}, {"", 5, 5, "burst needs a rate"}, {" ", 0, 0, "is not a rate"},
	} {
		r, err := rates.Text{Rate: test.text, Burst: test.burst, Concurrent: test.concurrent}.Parse()
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q, %d, %d: got %+v, %v, want %q", test.text, test.burst, test.concurrent, r, err, test.want)
		}
	}
	for _, text := range []rates.Text{{}, {Rate: "1/s"}, {Rate: "1000000/h", Burst: 1_000_000, Concurrent: 1_000_000}, {Concurrent: 1}, {Rate: "100/min", Burst: 1}} {
		if r, err := text.Parse(); err != nil || rates.TextOf(r) != text {
			t.Errorf("%+v: got %+v, %v", text, rates.TextOf(r), err)
		}
	}
}

// TestAllocations checks that counting a call allocates nothing.
func TestAllocations(t *testing.T) {
	g := generation(t, &rates.Settings{Default: parse(t, "1000000/s", 0, 10), Anonymous: parse(t, "1000000/s", 0, 10)})
	parent := principal(t, "ci", parse(t, "1000000/s", 0, 10), nil)
	l := rates.New()
	for name, call := range map[string]*wasmtools.Call{
		"a principal":     {Principal: parent, Generation: g},
		"a narrower one":  {Principal: principal(t, "ci/a", parse(t, "1000000/s", 0, 10), parent), Generation: g},
		"an address":      {Principal: wasmtools.Everybody(), Generation: g, Client: &client{netip.MustParseAddr("2001:db8::1")}},
		"without a rate":  {Principal: principal(t, "free", wasmtools.Rate{}, nil)},
		"nobody is known": {Principal: wasmtools.Everybody()},
	} {
		if n := testing.AllocsPerRun(1000, func() { taken(l, call, 1); rates.CallerOf(call) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// BenchmarkBegin measures how much time rates add to a call.
func BenchmarkBegin(b *testing.B) {
	g := generation(b, &rates.Settings{Anonymous: parse(b, "1000000/s", 0, 1000)})
	parent := principal(b, "ci", parse(b, "1000000/s", 0, 1000), nil)
	for name, call := range map[string]*wasmtools.Call{
		"none":      {Principal: wasmtools.Everybody()},
		"principal": {Principal: parent, Generation: g},
		"narrower":  {Principal: principal(b, "ci/a", parse(b, "1000000/s", 0, 1000), parent), Generation: g},
		"address":   {Principal: wasmtools.Everybody(), Generation: g, Client: &client{netip.MustParseAddr("2001:db8::1")}},
	} {
		b.Run(name, func(b *testing.B) {
			l := rates.New()
			b.ReportAllocs()
			for b.Loop() {
				ticket, _ := l.Begin(call)
				ticket.End()
			}
		})
	}
	b.Run("shared", func(b *testing.B) {
		n := &node{Limiter: rates.New(), antenna: &antenna{ether: &ether{heard: map[*antenna]func([]byte){}}}}
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		go n.Share(ctx, n.antenna)
		call := &wasmtools.Call{Principal: parent}
		b.ReportAllocs()
		for b.Loop() {
			ticket, _ := n.Begin(call)
			ticket.End()
		}
	})
	b.Run("newcomers", func(b *testing.B) {
		l, c := rates.New(), &client{}
		call := &wasmtools.Call{Principal: wasmtools.Everybody(), Generation: g, Client: c}
		var raw [16]byte
		b.ReportAllocs()
		for n := uint32(0); b.Loop(); n++ {
			binary.BigEndian.PutUint32(raw[:], n)
			c.address = netip.AddrFrom16(raw)
			ticket, _ := l.Begin(call)
			ticket.End()
		}
	})
}
