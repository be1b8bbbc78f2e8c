package toolfile

import (
	"bytes"
	"slices"

	"github.com/toolsrv/toolsrv/internal/capability/granted"
	"github.com/toolsrv/toolsrv/internal/lacking"
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/runtime/limittable"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A Granter knows the grants of tools. It is safe for concurrent use.
type Granter interface {
	// For returns which of its needs the tool at a path such as "/weather/now" was granted.
	For(path string, needs wasmtools.Needs) granted.Tool
}

// If a tool mostly waits, waitingPlaces of its calls run at a time, unless the configuration says otherwise. Such a call holds memory, which is
// accounted for, but no processor.
const waitingPlaces = 64

// Places returns how many calls of a tool run at a time under a configuration's limits. It depends on whether the tool waits for services or other
// tools.
func Places(l limits.Limits, waits bool) int {
	switch {
	case l.Concurrency > 0:
		return l.Concurrency
	case waits:
		return max(waitingPlaces, limittable.Default().Concurrency)
	}
	return limittable.Default().Concurrency
}

// An allowance is what one tool was given in addition to its file.
type allowance struct {
	limits  limits.Limits
	granted granted.Tool
}

// allowanceOf returns the allowance of the tool at a path. Without a granter it is granted nothing.
func allowanceOf(path string, needs wasmtools.Needs, limitsFor func(path string) limits.Limits, granter Granter) (l allowance) {
	if limitsFor != nil {
		l.limits = limitsFor(path)
	}
	if granter != nil {
		l.granted = granter.For(path, needs)
	} else {
		l.granted.Missing = lacking.All(needs)
	}
	if l.granted.Waits {
		l.limits.Concurrency = Places(l.limits, true)
	}
	return l
}

func (l *allowance) equal(other *allowance) bool {
	return l.limits == other.limits && slices.EqualFunc(l.granted.Values, other.granted.Values, hostcall.Grant.Equal) &&
		bytes.Equal(l.granted.Settings, other.granted.Settings) && slices.Equal(l.granted.Missing, other.granted.Missing)
}

// programs are a module's programs with settings, by the settings.
type programs map[string]*sandbox.Program

// with returns the program with settings: the existing one, if there is one.
func (p programs) with(plain *sandbox.Program, settings []byte, before programs) (*sandbox.Program, error) {
	if settings == nil {
		return plain, nil
	}
	if program := p[string(settings)]; program != nil { // nothing is copied to look it up
		return program, nil
	}
	program := before[string(settings)]
	if program == nil {
		var err error
		if program, err = plain.With(settings); err != nil {
			return nil, err
		}
	}
	p[string(settings)] = program
	return program, nil
}

// close closes those programs that are not in others.
func (p programs) close(others programs) {
	for key, program := range p {
		if others[key] != program {
			program.Close() // documented not to fail
		}
	}
}
