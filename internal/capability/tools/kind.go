package tools

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/invoker"
	"github.com/toolsrv/toolsrv/internal/keys"
	"github.com/toolsrv/toolsrv/internal/naming"
	"github.com/toolsrv/toolsrv/internal/pattern"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
	"github.com/toolsrv/toolsrv/wasmtools/config/key"
)

// Kind returns the capability. Its needs are the paths of tools, such as "units/convert".
func Kind() capability.Kind {
	return capability.Kind{
		Name: "tools", Module: Module, Set: Set(), Waits: true,
		Word:    checkNeed,
		New:     func() capability.Rule { return &Rule{} },
		Review:  review,
		Suggest: func(n wasmtools.Need) string { return keys.Line("tools", n.Words) },
		Reaches: reaches,
		Open:    open,
	}
}

// checkNeed reports what is wrong with the path of a tool.
func checkNeed(s string) error {
	namespace, name := "", s
	if slash := strings.LastIndexByte(s, '/'); slash >= 0 {
		namespace, name = s[:slash], s[slash+1:]
	}
	if wasmtools.CheckName(name) != nil || naming.CheckNamespace(namespace) != nil || strings.HasPrefix(s, "/") {
		return fmt.Errorf("%q is not the path of a tool: name one such as \"units/convert\"", text.Short(s))
	}
	return nil
}

// A Rule is the part of one grant in the configuration that concerns other tools.
type Rule struct {
	// Tools are paths or patterns of tools that may be called.
	Tools []string
}

var _ capability.Rule = (*Rule)(nil)

// Keys returns the readers of the rule's keys.
func (r *Rule) Keys(string) key.Table {
	return key.Table{
		// tools and patterns | tools that may be called
		"tools": keys.Words(&r.Tools, keys.Pattern),
	}
}

// Shown returns what a log may show of the rule.
func (r *Rule) Shown() []key.Shown { return []key.Shown{key.Listed("tools", r.Tools)} }

func review(v *capability.Review, from capability.Rule) {
	for k, entry := range from.(*Rule).Tools {
		if !slices.ContainsFunc(v.Needs, func(n wasmtools.Need) bool {
			return slices.ContainsFunc(n.Words, func(need string) bool { return pattern.Match(entry, need) })
		}) {
			v.Unneeded(fmt.Sprintf("tools[%d]", k), "a tool")
		}
	}
}

// open grants calls of other tools.
func open(h capability.Host) capability.Configure {
	calls, _ := h.Invoker.(*invoker.Invoker) // a nested call begins before its arguments are read
	service := Service{Invoker: calls, Table: h.Table, Logger: h.Logger}
	return func(capability.Configuration) capability.Decide {
		return func(_ string, n wasmtools.Need, matching []capability.Given) (any, []wasmtools.Missing) {
			var missing []wasmtools.Missing
			for _, need := range n.Words {
				if !slices.ContainsFunc(matching, func(one capability.Given) bool {
					return slices.ContainsFunc(one.Rule.(*Rule).Tools, func(granted string) bool { return pattern.Match(granted, need) })
				}) {
					missing = append(missing, wasmtools.Missing{Capability: "tools", Entry: need})
				}
			}
			if len(missing) > 0 || calls == nil {
				return nil, missing
			}
			return Grant(&service, n.Words...).Value, nil
		}
	}
}

// reaches returns the paths of the tools that may be called.
func reaches(value any) (all []capability.Reached) {
	for _, path := range value.(*permission).paths {
		if path == Caller {
			all = append(all, capability.Reached{Capability: "caller", Entry: "name", Detail: "shown to the tool"})
			continue
		}
		all = append(all, capability.Reached{Capability: "tools", Entry: strings.TrimPrefix(path, "/")})
	}
	return all
}
