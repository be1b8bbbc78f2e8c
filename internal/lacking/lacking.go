// Package lacking describes what tools lack, for answers, the log and the command line.
package lacking

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// maxBytes is the largest description of one tool: a manifest may need many things.
const maxBytes = 1 << 10

// Of returns what a tool lacks, in one line; "" if nothing is missing.
func Of(t *wasmtools.Tool) string {
	return text.Clip(strings.Join(Each(t.Missing), ", "), maxBytes)
}

// Each returns a few words for each thing that is missing or needed, such as "http https://api.example.com".
func Each(missing []wasmtools.Missing) []string {
	all := make([]string, len(missing))
	for i, m := range missing {
		all[i] = m.Capability
		if m.Entry != "" {
			all[i] += " " + m.Entry
		}
		if why := because(m); why != "" {
			all[i] += " (" + why + ")"
		}
	}
	return all
}

// because says why something is missing, if there is more to say than that it was not granted.
func because(m wasmtools.Missing) string {
	switch m.Cause {
	case wasmtools.NoCapability:
		return "this server does not have it"
	case wasmtools.NoState:
		return "it is granted, but [state] names no directory"
	case wasmtools.NoSecret:
		const why = "no source in [secrets] has it"
		if m.Entry != "" {
			return why
		}
		line := ""
		if m.Line > 0 {
			line = fmt.Sprintf(" (line %d)", m.Line)
		}
		return "the secret of ${secret:...} in the headers of its grant" + line + ": " + why
	case wasmtools.Unusable:
		if m.Match != "" {
			return "of the grant to " + m.Match + ": " + m.Detail
		}
	}
	return m.Detail
}

// All returns what a tool lacks if none of its needs is granted.
func All(needs wasmtools.Needs) (all []wasmtools.Missing) {
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		if needs[name].Words == nil {
			all = append(all, wasmtools.Missing{Capability: name})
		}
		for _, word := range needs[name].Words {
			all = append(all, wasmtools.Missing{Capability: name, Entry: word})
		}
	}
	return all
}
