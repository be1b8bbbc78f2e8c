package trace_test

import (
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/trace"
)

const (
	id    = "4bf92f3577b34da6a3ce929d0e0e4736"
	span  = "00f067aa0ba902b7"
	usual = "00-" + id + "-" + span + "-01"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, parent string
		ok, sampled  bool
	}{
		{"as most clients send it", usual, true, true},
		{"not sampled", "00-" + id + "-" + span + "-00", true, false},
		{"with unknown flags", "00-" + id + "-" + span + "-ff", true, true},
		{"a later version", "01-" + id + "-" + span + "-01", true, true},
		{"a later version with more", "cc-" + id + "-" + span + "-01-what-will-come", true, true},
		{"a later version with more, without a dash", "cc-" + id + "-" + span + "-01x", false, false},
		{"an endless later version", "cc-" + id + "-" + span + "-01-" + strings.Repeat("x", 300), false, false},
		{"nothing", "", false, false},
		{"the invalid version ff", "ff-" + id + "-" + span + "-01", false, false},
		{"the first version with more", usual + "-x", false, false},
		{"a trace of zeros", "00-" + strings.Repeat("0", 32) + "-" + span + "-01", false, false},
		{"a span of zeros", "00-" + id + "-" + strings.Repeat("0", 16) + "-01", false, false},
		{"capitals", strings.ToUpper(usual), false, false},
		{"letters that are not hexadecimal", "00-" + strings.Replace(id, "f", "g", 1) + "-" + span + "-01", false, false},
		{"a short trace", "00-" + id[1:] + "-" + span + "-010", false, false},
		{"no lines between", strings.ReplaceAll(usual, "-", "0"), false, false},
		{"a space before", " " + usual[1:], false, false},
		{"two at once", usual + "," + usual, false, false},
		{"not ASCII", strings.Replace(usual, "00-", "0é", 1), false, false},
	} {
		p, ok := trace.Parse(test.parent, "vendor=value")
		if ok != test.ok || p.Sampled != test.sampled || ok && p.State != "vendor=value" {
			t.Errorf("%s: got %+v %t", test.name, p, ok)
		}
		if ok && trace.Format(p.Trace, p.Span) != usual {
			t.Errorf("%s: got %s", test.name, trace.Format(p.Trace, p.Span))
		}
	}
	if p, ok := trace.Parse(usual, strings.Repeat("x", 513)); !ok || p.State != "" {
		t.Errorf("a tracestate that is too long: got %+v %t", p, ok)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(usual, "vendor=value")
	f.Add("01-"+id+"-"+span+"-01-x", "")
	f.Add(strings.ToUpper(usual), "a=b,c=d")
	f.Fuzz(func(t *testing.T, parent, state string) {
		p, ok := trace.Parse(parent, state)
		if !ok {
			if p != (trace.Parent{}) {
				t.Errorf("%q: got %+v", parent, p)
			}
			return
		}
		if again, ok := trace.Parse(trace.Format(p.Trace, p.Span), p.State); !ok || again.Trace != p.Trace || again.Span != p.Span {
			t.Errorf("%q: got %+v, then %+v", parent, p, again)
		}
	})
}
