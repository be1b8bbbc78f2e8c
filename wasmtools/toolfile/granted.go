package toolfile

import (
	"bytes"
	"slices"

	"github.com/toolsrv/toolsrv/runtime/hostabi"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/runtime/sandbox"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A Granter says what tools were granted. It is safe for concurrent use.
type Granter interface {
	// For returns what the tool at a path such as "/weather/now" was granted of its needs: values for sets of functions, and
	// settings, JSON. missing are the needs that it was not granted, worded for people: such a tool can't be called.
	For(path string, needs wasmtools.Needs) (values []hostabi.Grant, settings []byte, missing []string)
}

// waitingPlaces is how many calls of a tool that waits for others run at a time, unless the configuration says. Such a call holds
// memory, which is accounted for, but no processor.
const waitingPlaces = 64

// Places returns how many calls of a tool run at a time under a configuration's limits: of one that waits for services or other tools, or
// of any other.
func Places(l limits.Limits, waits bool) int {
	switch {
	case l.Concurrency > 0:
		return l.Concurrency
	case waits:
		return max(waitingPlaces, limits.Default().Concurrency)
	}
	return limits.Default().Concurrency
}

// A lot is what one tool was given beside its file.
type lot struct {
	limits   limits.Limits
	values   []hostabi.Grant
	settings []byte
	missing  []string
}

// lotOf returns what the tool at a path is given. Without a granter it is granted nothing.
func lotOf(path string, needs wasmtools.Needs, limitsFor func(path string) limits.Limits, granter Granter) (l lot) {
	if limitsFor != nil {
		l.limits = limitsFor(path)
	}
	if waits := len(needs.HTTP) > 0 || len(needs.Tools) > 0; waits {
		l.limits.Concurrency = Places(l.limits, true)
	}
	if granter != nil {
		l.values, l.settings, l.missing = granter.For(path, needs)
	} else {
		l.missing = needs.Words()
	}
	return l
}

func (l *lot) equal(other *lot) bool {
	return l.limits == other.limits && slices.EqualFunc(l.values, other.values, hostabi.Grant.Equal) &&
		bytes.Equal(l.settings, other.settings) && slices.Equal(l.missing, other.missing)
}

// programs are a module's programs with settings, by the settings.
type programs map[string]*sandbox.Program

// with returns the program with settings: the one of before, if there is one.
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

// close closes those that others do not have.
func (p programs) close(others programs) {
	for key, program := range p {
		if others[key] != program {
			program.Close() // documented not to fail
		}
	}
}
