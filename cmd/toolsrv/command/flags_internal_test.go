package command

import (
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/limittable"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// TestLimitFlag checks that flags accept the same values as the table [limits].
func TestLimitFlag(t *testing.T) {
	t.Parallel()
	all := map[string]*limittable.Limit{}
	for _, e := range limittable.All() {
		all[e.Key] = &e
	}
	for _, c := range []struct {
		key, text string
		want      limits.Limits
		says      string
	}{
		{"timeout", "200ms", limits.Limits{Timeout: 200 * time.Millisecond}, ""},
		{"memory", "1MiB", limits.Limits{Memory: 1 << 20}, ""},
		{"memory", "lots", limits.Limits{}, "not a size"},
		{"memory", "1B", limits.Limits{}, "out of range"},
		{"timeout", "", limits.Limits{}, "not a time"},
		{"queue", "5", limits.Limits{}, "whole number"},
	} {
		var got limits.Limits
		err := limitFlag{&got, all[c.key]}.Set(c.text)
		if got != c.want || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s=%q: got %+v, %v; want %+v, %q", c.key, c.text, got, err, c.want, c.says)
		}
	}
}
