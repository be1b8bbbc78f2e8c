package kv

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/keys"
	"github.com/toolsrv/toolsrv/internal/runtime/limittable"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/text"
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

// DefaultEntries is how many keys may be kept if a grant does not say.
const DefaultEntries = 100_000

// DefaultPrincipals is how many callers may keep values of their own if a grant does not say.
const DefaultPrincipals = 1000

// These are the ranges of what can be granted.
const (
	minBytes   = 4 << 10
	maxBytes   = 1 << 40
	maxEntries = 100_000_000

	maxPrincipals = 100_000
)

// A Rule is the part of one grant in the configuration that concerns keys and values.
type Rule struct {
	// Bytes is how many bytes of keys and values may be kept; 0 means none.
	Bytes int64
	// Entries is how many keys may be kept; 0 means DefaultEntries.
	Entries int
	// Own is whether each caller has its own values, with a quota of its own.
	Own bool
	// Principals is how many callers may keep values if Own is set; 0 means DefaultPrincipals.
	Principals int
}

var _ capability.Rule = (*Rule)(nil)

// Keys returns the readers of the rule's keys.
func (r *Rule) Keys(string) key.Table {
	return key.Table{
		// how much may be kept, keys and values together. `{size = "1MiB", by = "principal", principals = 1000}` is that much
		// for [each caller apart](capabilities.md#each-callers-own), and for 1 to 100000 callers; 1000 if it is missing
		"kv": r.read,
		// how many keys may be kept; 100000 if it is missing
		"kv_entries": keys.Quantity(limittable.Count, 1, maxEntries, func(n int64) { r.Entries = int(n) }),
	}
}

// read reads how much may be kept, and whether each caller has its own values.
func (r *Rule) read(value any) error {
	size := keys.Quantity(limittable.Bytes, minBytes, maxBytes, func(n int64) { r.Bytes = n })
	table, ok := value.(map[string]any)
	if !ok {
		return keys.ZeroOr(&r.Bytes, size)(value)
	}
	by := ""
	known := key.Table{
		"size": size,
		"by": keys.Word(&by, `"principal"`, func(s string) (string, error) {
			if s != "principal" {
				return "", fmt.Errorf("%q is not known: use \"principal\", or leave by out for one place shared by all callers", text.Short(s))
			}
			return s, nil
		}),
		"principals": keys.Quantity(limittable.Count, 1, maxPrincipals, func(n int64) { r.Principals = int(n) }),
	}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		read := known[name]
		if read == nil {
			return &keys.MemberError{Name: name, Err: errors.New("has a key that is not known: the keys are by, principals, size")}
		}
		if err := read(table[name]); err != nil {
			return &keys.MemberError{Name: name, Err: err, Known: true}
		}
	}
	r.Own = by != ""
	switch {
	case r.Bytes == 0:
		return &keys.MemberError{Name: "size", Err: errors.New("is missing: say how much may be kept, as in size = \"1MiB\""), Known: true}
	case r.Principals > 0 && !r.Own:
		return &keys.MemberError{Name: "principals", Err: errors.New("has an effect only with by = \"principal\""), Known: true}
	}
	return nil
}

// Shown returns what a log may show of the rule.
func (r *Rule) Shown() []key.Shown {
	var own []string
	if r.Own {
		own = []string{fmt.Sprintf("by principal, at most %d", r.principals())}
	}
	return []key.Shown{key.Listed("kv", own), key.Counted("kv", r.Bytes, limittable.Bytes.Format), key.Counted("kv_entries", int64(r.Entries), limittable.Count.Format)}
}

func (r *Rule) principals() int { return cmp.Or(r.Principals, DefaultPrincipals) }

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
	if from.(*Rule).Own {
		v.OfNobody("kv")
	}
}

// open grants the space of a tool's namespace. The last quota applies.
func open(capability.Host) capability.Configure {
	return func(c capability.Configuration) capability.Decide {
		return func(tool string, _ wasmtools.Need, matching []capability.Given) (any, []wasmtools.Missing) {
			var quota state.Usage
			own := 0
			for _, given := range matching {
				if r := given.Rule.(*Rule); r.Bytes > 0 {
					quota = state.Usage{Bytes: r.Bytes, Entries: DefaultEntries}
					if own = 0; r.Own {
						own = r.principals()
					}
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
			store, namespace := (*state.Keep)(c.State).Store(), strings.Trim(path.Dir(tool), "/.")
			if own > 0 {
				return OpenOwn(store, namespace, quota, own), nil
			}
			return Open(store, namespace, quota), nil
		}
	}
}

// reaches returns the namespace whose keys the tool shares. It may be empty.
func reaches(value any) []capability.Reached {
	s := value.(*Space)
	reached := capability.Reached{Capability: "kv", Entry: s.namespace, Own: s.own > 0}
	if reached.Own {
		reached.Detail = "the caller's own"
	}
	return []capability.Reached{reached}
}
