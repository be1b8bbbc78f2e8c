package embedding_test

import (
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/runtime/hostabi"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
	"github.com/toolsrv/toolsrv/wasmtools/capability/answer"
	"github.com/toolsrv/toolsrv/wasmtools/config/key"
)

// sensors is a capability of a program's own: a tool reads those sensors of the program that it declares and was granted. read returns
// the value of the sensor with a name.
func sensors(read func(name string) string) capability.Kind {
	const module = "sensors_v1"
	return capability.Kind{
		Name: "x-sensors", Module: module,
		Set: &hostabi.Set{Module: module, Functions: []hostabi.Function{
			{Name: "read", Params: "ii", Results: "i", Do: func(c *hostabi.Call, stack []uint64) {
				granted, _ := c.Grant().(names)
				if granted == "" {
					answer.Fail(c, stack, answer.NotDeclared(c, "x-sensors"))
					return
				}
				name := string(c.View(stack[0], uint64(min(uint32(stack[1]), 64)))) // first limit the size of anything that a guest passes
				if !slices.Contains(granted.list(), name) {
					answer.Fail(c, stack, answer.Failf(answer.NotGranted, "The tool does not declare that it needs the sensor %q.", name))
					return
				}
				answer.Give(c, stack, []byte(read(name)))
			}},
			answer.Read(),
		}},
		Word: wasmtools.CheckName,
		New:  func() capability.Rule { return &rule{} },
		Suggest: func(n wasmtools.Need) string {
			return key.Line("x-sensors", n.Words)
		},
		Open: func(capability.Host) capability.Configure {
			return func(capability.Configuration) capability.Decide { return grant }
		},
	}
}

// A rule is the content of one [[grant]].
type rule struct{ sensors []string }

func (r *rule) Keys(string) key.Table {
	return key.Table{"x-sensors": key.Words(&r.sensors, key.Name)}
}

func (r *rule) Shown() []key.Shown { return []key.Shown{key.Listed("x-sensors", r.sensors)} }

// Of the names that a tool needs, grant returns those that the tool was granted. A value of a comparable type needs no method Equal.
func grant(_ string, n wasmtools.Need, matching []capability.Given) (value any, missing []wasmtools.Missing) {
	var granted names
	for _, name := range n.Words {
		if !slices.ContainsFunc(matching, func(g capability.Given) bool { return slices.Contains(g.Rule.(*rule).sensors, name) }) {
			missing = append(missing, wasmtools.Missing{Capability: "x-sensors", Entry: name})
			continue
		}
		granted += names(name) + " "
	}
	return granted, missing
}

// names are the names of sensors, with a space after each.
type names string

func (n names) list() []string { return strings.Fields(string(n)) }
