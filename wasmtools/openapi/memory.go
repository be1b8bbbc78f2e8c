package openapi

import (
	"context"
	"runtime"
	"sync/atomic"

	"github.com/toolsrv/toolsrv/wasmtools"
)

const (
	// small is up to how many bytes a body or a result costs what a connection costs anyway, so nobody counts it. It
	// keeps small calls going while large ones use up the memory.
	small = 64 << 10
	// defaultMemory is Options.Memory where it is zero: 256 bodies at the default limit.
	defaultMemory = 256 << 20
)

// A memory counts the bytes of large bodies and results that all requests hold at the same time. Without it, as many
// clients as there are connections could each have the largest body wait.
type memory struct {
	most  int64
	used  atomic.Int64
	large chan struct{} // a place for each validation of a large body
}

func newMemory(most int64) *memory {
	if most <= 0 {
		most = defaultMemory
	}
	// Validation needs a hundred times the body's bytes where it is all small values, and never waits: more at a
	// time than there are processors would be no faster, only larger.
	return &memory{most: most, large: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// grow lets a holder of held bytes have n more, or reports false. Whoever is alone gets what he asks for, so that
// a limit of one tool above all that there is does not make it uncallable.
func (m *memory) grow(held, n int64) bool {
	used := m.used.Add(n)
	if used > m.most && used > held+n {
		m.used.Add(-n)
		return false
	}
	return true
}

// hold counts bytes that are there already, such as a result; they keep later calls out.
func (m *memory) hold(n int64) { m.used.Add(n) }

func (m *memory) release(n int64) { m.used.Add(-n) }

// check refuses a call while there is too much.
func (m *memory) check() error {
	if m.used.Load() > m.most {
		return errMemory()
	}
	return nil
}

// validate checks a body with the schema of a tool; one that is large waits for a place.
func (m *memory) validate(ctx context.Context, s wasmtools.Schema, body []byte) ([]byte, error) {
	if len(body) > small {
		select {
		case m.large <- struct{}{}:
			defer func() { <-m.large }()
		case <-ctx.Done():
			return nil, &wasmtools.Error{Code: wasmtools.CodeCancelled, Err: context.Cause(ctx)}
		}
	}
	return s.Validate(body)
}

func errMemory() error {
	return &wasmtools.Error{Code: wasmtools.CodeOverloaded, Message: "Too many large calls are running; try again later"}
}
