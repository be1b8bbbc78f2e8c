package progress_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/internal/progress"
)

// take returns the waiting report as a text.
func take(r *progress.Reports, now time.Time) string {
	done, total, message, ok := r.Take(now)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%v/%v %s", done, total, message)
}

// TestAdd shows which reports count, and as what.
func TestAdd(t *testing.T) {
	t.Parallel()
	nan, inf := math.NaN(), math.Inf(1)
	var r progress.Reports
	for i, test := range []struct {
		done, total float64
		message     string
		want        string // empty if it is dropped
	}{
		{nan, 1, "", ""},
		{inf, 1, "", ""},
		{-inf, 1, "", ""},
		{-1, 1, "", ""},
		{math.Copysign(0, -1), math.Copysign(0, -1), "", "0/0 "},
		{0, 1, "again", ""},
		{math.SmallestNonzeroFloat64, 0, "a little", "5e-324/0 a little"},
		{1, nan, "a", "1/0 a"},
		{2, inf, "b", "2/0 b"},
		{3, 2.5, "less than done", "3/0 less than done"},
		{4, 4, "all", "4/4 all"},
		{4, 5, "not more", ""},
		{nan, 5, "", ""},
		{math.MaxFloat64, -1, "\xff\x00é", "1.7976931348623157e+308/0 \uFFFD\x00é"},
	} {
		added := r.Add(test.done, test.total, []byte(test.message))
		if got := take(&r, time.Now()); got != test.want || added != (test.want != "") {
			t.Errorf("%d: got %q, added %t, want %q", i, got, added, test.want)
		}
	}
}

// TestMessage cuts long messages where a character ends.
func TestMessage(t *testing.T) {
	t.Parallel()
	for _, message := range []string{
		strings.Repeat("x", progress.MaxMessage),
		strings.Repeat("x", progress.MaxMessage+1),
		"x" + strings.Repeat("é", progress.MaxMessage),
		strings.Repeat("x", progress.MaxMessage-1) + "😀",
		strings.Repeat("a\xff", 10*progress.MaxMessage),
	} {
		var r progress.Reports
		given := []byte(message)
		r.Add(1, 0, given)
		clear(given) // the guest may overwrite the message once Add has returned
		_, _, got, _ := r.Take(time.Now())
		fits := len(message) <= progress.MaxMessage
		if fits != (got == message) || len(got) > progress.MaxMessage || len(got) < progress.MaxMessage-4 || !utf8.ValidString(got) {
			t.Errorf("of %.20q got %d bytes: %q", message, len(got), got)
		}
	}
}

// TestPace lets a call report as often as it can, with pauses or without, and counts the reports that pass within a second.
func TestPace(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	begun := time.Now()
	for _, most := range []time.Duration{time.Microsecond, 5 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second} {
		var r progress.Reports
		var told []time.Time
		now := begun
		for n := 1.0; now.Sub(begun) < 10*time.Second && n < 1e5; n++ {
			r.Add(n, 0, nil)
			if r.Due(now, random.IntN(2) == 0) {
				r.Take(now)
				told = append(told, now)
			}
			now = now.Add(time.Duration(random.Int64N(int64(most))))
		}
		r.Add(math.MaxFloat64, 0, nil)
		if r.Take(now); len(told) < 3 {
			t.Errorf("pauses of %v: only %d reports passed", most, len(told))
		}
		told = append(told, now) // at the end
		for i := 10; i < len(told); i++ {
			if within := told[i].Sub(told[i-10]); within < time.Second {
				t.Errorf("pauses of %v: eleven reports passed within %v", most, within)
			}
		}
	}
}

// TestNewestWaits checks that the first three reports pass at once. Of the reports that come too soon after them, only the newest passes, as soon
// as it may.
func TestNewestWaits(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var r progress.Reports
	report := func(n float64) string {
		r.Add(n, 10, fmt.Append(nil, "step"))
		if !r.Due(now, false) {
			return ""
		}
		return take(&r, now)
	}
	for n, want := range []string{"0/10 step", "1/10 step", "2/10 step", "", "", ""} {
		if got := report(float64(n)); got != want {
			t.Errorf("report %d: %q passed at once, want %q", n, got, want)
		}
	}
	if !r.Due(now, true) {
		t.Error("the newest report is not due, although the call is about to wait")
	}
	now = now.Add(169 * time.Millisecond)
	if r.Due(now, false) {
		t.Error("a report is due too early")
	}
	now = now.Add(time.Millisecond)
	if got := take(&r, now); got != "5/10 step" || r.Due(now.Add(time.Hour), true) {
		t.Errorf("got %q, want the newest, once", got)
	}
	now = now.Add(time.Second)
	for n := 6.0; n <= 8; n++ {
		if report(n) == "" {
			t.Errorf("after a pause, report %v waits", n)
		}
	}
}

// FuzzReports lets a call make three arbitrary reports. The reports that pass grow, and keep what listeners were promised.
func FuzzReports(f *testing.F) {
	nan, inf := math.NaN(), math.Inf(1)
	f.Add(1.0, 2.0, 3.0, 4.0, "message", uint8(0))
	f.Add(nan, inf, -inf, nan, "\xff", uint8(200))
	f.Add(math.Copysign(0, -1), math.SmallestNonzeroFloat64, math.MaxFloat64, -1.0, strings.Repeat("é", 600), uint8(17))
	f.Fuzz(func(t *testing.T, a, b, c, total float64, message string, pause uint8) {
		var r progress.Reports
		now, before := time.Now(), -1.0
		for _, done := range []float64{a, b, c} {
			r.Add(done, total, []byte(message))
			now = now.Add(time.Duration(pause) * time.Millisecond)
			if !r.Due(now, false) {
				continue
			}
			done, total, message, ok := r.Take(now)
			if !ok || !(done > before) || math.IsInf(done, 0) || math.Signbit(done) || math.Signbit(total) || math.IsNaN(total) || math.IsInf(total, 0) || total != 0 && total < done {
				t.Errorf("told %v/%v after %v, %t", done, total, before, ok)
			}
			if !utf8.ValidString(message) || len(message) > progress.MaxMessage {
				t.Errorf("the message %q passed", message)
			}
			before = done
		}
	})
}
