package limittable_test

import (
	"reflect"
	"regexp"
	"runtime"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/limittable"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// TestTable checks what the compiler can't check in the tags.
func TestTable(t *testing.T) {
	t.Parallel()
	fields := reflect.TypeFor[limits.Limits]()
	all := limittable.All()
	if len(all) != fields.NumField() {
		t.Fatalf("got %d entries for %d fields", len(all), fields.NumField())
	}
	seen := map[string]bool{}
	for i, e := range all {
		field := fields.Field(i)
		if !regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`).MatchString(e.Key) || seen[e.Key] {
			t.Errorf("%s: the key %q is taken, or is not in lower_case", field.Name, e.Key)
		}
		seen[e.Key] = true
		if isTime := field.Type == reflect.TypeFor[time.Duration](); isTime != (e.Unit == limittable.Time) {
			t.Errorf("%s has the type %s, but the unit %q", field.Name, field.Type, e.Unit)
		}
		if e.Means == "" || (e.Zero != "") != (e.Least == 0) {
			t.Errorf("%s: got the meaning %q, the least value %d, and the meaning %q of 0", e.Key, e.Means, e.Least, e.Zero)
		}
		if d := e.Default(); e.Least < 0 || e.Most < d || d < e.Least {
			t.Errorf("%s: the default %d is not from %d to %d", e.Key, d, e.Least, e.Most)
		}
		for _, n := range []int64{e.Least, e.Most} {
			if text := e.Unit.Format(n); text == "" {
				t.Errorf("%s: no text for %d", e.Key, n)
			} else if got, err := e.Unit.Parse(text); got != n || err != nil {
				t.Errorf("%s: got %d, %v for %s, want %d", e.Key, got, err, text, n)
			}
		}
		var l limits.Limits
		e.Set(&l, e.Most)
		if got := reflect.ValueOf(l).Field(i).Int(); got != e.Most {
			t.Errorf("%s: got %d, want %d", e.Key, got, e.Most)
		}
	}
}

func TestDefault(t *testing.T) {
	t.Parallel()
	want := limits.Limits{
		Timeout: 5 * time.Second, Memory: 64 << 20, Stack: 32 << 20, Input: 1 << 20, Output: 4 << 20,
		LogLines: 100, Concurrency: 4 * runtime.GOMAXPROCS(0), Queue: 64,
	}
	if got := limittable.Default(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestMeant(t *testing.T) {
	t.Parallel()
	none := limits.Limits{Timeout: -1, Fuel: -1, Memory: -1, Stack: -1, Input: -1, Output: -1, LogLines: -1, Concurrency: -1, Queue: -1}
	want := limittable.Default()
	want.LogLines, want.Queue = 0, 0
	if got := limittable.Meant(none); got != want {
		t.Errorf("negative: got %+v, want %+v", got, want)
	}
	some := limits.Limits{Timeout: 2 * time.Second, Fuel: 3, Queue: 7}
	want = limittable.Default()
	want.Timeout, want.Fuel, want.Queue = 2*time.Second, 3, 7
	if got := limittable.Meant(some); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestSetZero(t *testing.T) {
	t.Parallel()
	var l limits.Limits
	for _, e := range limittable.All() {
		if e.Least == 0 {
			e.Set(&l, 0)
		}
	}
	if want := (limits.Limits{Fuel: -1, LogLines: -1, Concurrency: -1, Queue: -1}); l != want {
		t.Errorf("got %+v, want %+v", l, want)
	}
}

func TestOver(t *testing.T) {
	t.Parallel()
	base := limits.Limits{Timeout: time.Second, Fuel: 100, Queue: 3}
	got := limittable.Over(limits.Limits{Timeout: time.Minute, Fuel: -1, Queue: -1, Memory: 1 << 20}, base)
	if want := (limits.Limits{Timeout: time.Minute, Queue: -1, Memory: 1 << 20}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := limittable.Over(limits.Limits{}, base); got != base {
		t.Errorf("nothing set: got %+v, want %+v", got, base)
	}
}

func BenchmarkOver(b *testing.B) {
	base, l := limittable.Default(), limits.Limits{Queue: 1}
	b.ReportAllocs()
	for b.Loop() {
		base = limittable.Over(l, base)
	}
}

func BenchmarkDefault(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		limittable.Default()
	}
}
