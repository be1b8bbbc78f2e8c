package kv

import (
	"path"
	"strings"

	"github.com/toolsrv/toolsrv/internal/keys"
	"github.com/toolsrv/toolsrv/internal/runtime/limittable"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
	"github.com/toolsrv/toolsrv/wasmtools/config/key"
)

// Kind returns the capability. Its need is true.
func Kind() capability.Kind {
	return capability.Kind{
		Name: "kv", Module: Module, Set: Set(), Keeps: true,
		New:     func() capability.Rule { return &Rule{} },
		Review:  review,
		Suggest: func(wasmtools.Need) string { return "kv = \"16MiB\"\n" },
		Reaches: reaches,
		Open:    open,
	}
}

// DefaultEntries is how many keys may be kept where a grant does not say.
const DefaultEntries = 100_000

// The ranges of what can be granted. The table in docs/configuration.md repeats them.
const (
	minBytes   = 4 << 10
	maxBytes   = 1 << 40
	maxEntries = 100_000_000
)

// A Rule is one grant of the configuration, as far as keys and values go.
type Rule struct {
	// Bytes is how many bytes of keys and values may be kept; 0: none.
	Bytes int64
	// Entries is how many keys; 0: DefaultEntries.
	Entries int
}

var _ capability.Rule = (*Rule)(nil)

// Keys returns the readers of its keys.
func (r *Rule) Keys(string) key.Table {
	return key.Table{
		"kv":         keys.ZeroOr(&r.Bytes, keys.Quantity(limittable.Bytes, minBytes, maxBytes, func(n int64) { r.Bytes = n })),
		"kv_entries": keys.Quantity(limittable.Count, 1, maxEntries, func(n int64) { r.Entries = int(n) }),
	}
}

// Shown returns what a log may tell of it.
func (r *Rule) Shown() []key.Shown {
	return []key.Shown{key.Counted("kv", r.Bytes, limittable.Bytes.Format), key.Counted("kv_entries", int64(r.Entries), limittable.Count.Format)}
}

func review(v *capability.Review, from capability.Rule) {
	if from.(*Rule).Bytes == 0 {
		return
	}
	if !v.State {
		v.Wrong("kv", "there is no place to keep it: set directory in [state]")
	}
	if len(v.Needs) == 0 {
		v.Unneeded("kv", "kv")
	}
}

// open grants the space of a tool's namespace. The last quota counts.
func open(capability.Host) capability.Configure {
	return func(c capability.Configuration) capability.Decide {
		return func(tool string, _ wasmtools.Need, matching []capability.Given) (any, []wasmtools.Missing) {
			var quota state.Usage
			for _, given := range matching {
				if r := given.Rule.(*Rule); r.Bytes > 0 {
					quota = state.Usage{Bytes: r.Bytes, Entries: DefaultEntries}
					if r.Entries > 0 {
						quota.Entries = int64(r.Entries)
					}
				}
			}
			switch {
			case quota.Bytes == 0:
				return nil, []wasmtools.Missing{{Capability: "kv"}}
			case c.State == nil:
				return nil, []wasmtools.Missing{{Capability: "kv", Cause: wasmtools.NoState}}
			}
			return Open((*state.Keep)(c.State).Store(), strings.Trim(path.Dir(tool), "/."), quota), nil
		}
	}
}

// reaches returns the namespace whose keys are shared, which may be empty.
func reaches(value any) []capability.Reached {
	return []capability.Reached{{Capability: "kv", Entry: value.(*Space).namespace}}
}
