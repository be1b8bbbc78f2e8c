package invoke

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// Validation needs a hundred times the arguments' bytes if they are all small values, and half a second at worst, as the tool's author
// and the client like, before any limit of the tool holds. It never waits: more at a time than there are processors would not be faster,
// but need more memory, and keep others waiting. So what may be dear has places, for which modules take turns.
const (
	// free is the largest size in bytes of arguments that are checked without a place, as long as they are cheap to check.
	free = 1 << 10
	// patience is how long a validation waits for a place.
	patience = 5 * time.Second
)

// littleSchema is a schema that can tell that a check is dear before it has done it. Those of package schema are.
type littleSchema interface {
	ValidateLittle(body []byte) (valid []byte, ok bool, err error)
}

// A validator checks the arguments of all calls.
type validator struct {
	brief *places // for arguments of up to 64 KiB, as long as they are cheap to check
	dear  *places // for all others
}

// newValidator returns a validator for calls that may hold so many bytes of arguments: with little memory it does fewer dear checks at a time.
func newValidator(memory int64) *validator {
	n := int64(runtime.GOMAXPROCS(0))
	return &validator{brief: newPlaces(int(n)), dear: newPlaces(int(max(1, n*min(memory, defaultMemory)/defaultMemory)))}
}

// validate checks the arguments of a call, and returns them with their defaults.
func (v *validator) validate(ctx context.Context, t *wasmtools.Tool, path string, call *wasmtools.Call) (valid []byte, err error) {
	module := cmp.Or(t.Digest, path)
	if len(call.Arguments) <= small {
		s, ok := t.Parameters.(littleSchema)
		switch {
		case !ok: // the program's own
			return t.Parameters.Validate(call.Arguments)
		case len(call.Arguments) <= free:
			valid, ok, err = s.ValidateLittle(call.Arguments)
		default:
			valid, ok, err = v.little(ctx, s, module, call)
		}
		if ok {
			return valid, err
		}
	}
	if err := v.dear.enter(ctx, module, call); err != nil {
		return nil, err
	}
	defer v.dear.leave()
	return t.Parameters.Validate(call.Arguments)
}

// little is ValidateLittle in a place. ok is true where there is none.
func (v *validator) little(ctx context.Context, s littleSchema, module string, call *wasmtools.Call) (valid []byte, ok bool, err error) {
	if err := v.brief.enter(ctx, module, call); err != nil {
		return nil, true, err
	}
	defer v.brief.leave()
	return s.ValidateLittle(call.Arguments)
}

// places are a bounded number of places, for which modules wait in turn, so that who wants many does not keep others waiting.
type places struct {
	mu      sync.Mutex
	free    int                        // 0 while anybody waits
	waiting map[string][]chan struct{} // by module; closed when the place is there
	turns   []string                   // the modules of waiting
}

func newPlaces(n int) *places { return &places{free: n, waiting: map[string][]chan struct{}{}} }

// enter takes a place, which leave gives back. It waits until ctx is done, for some seconds, and not beyond the end of the call inside
// which this one is made.
func (p *places) enter(ctx context.Context, module string, call *wasmtools.Call) error {
	p.mu.Lock()
	if p.free > 0 {
		p.free--
		p.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	if len(p.waiting[module]) == 0 {
		p.turns = append(p.turns, module)
	}
	p.waiting[module] = append(p.waiting[module], turn)
	p.mu.Unlock()
	wait := patience
	if outer, ok := call.Outer.(interface{ Ends() time.Time }); ok {
		wait = min(wait, time.Until(outer.Ends()))
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	var err error
	select {
	case <-turn:
		return nil
	case <-timer.C:
		err = &wasmtools.Error{Code: wasmtools.CodeOverloaded, Message: "The arguments of too many calls are being checked; try again later"}
	case <-ctx.Done():
		err = &wasmtools.Error{Code: wasmtools.CodeCancelled, Err: context.Cause(ctx)}
	}
	if !p.withdraw(module, turn) {
		p.leave() // the place came at the same moment
	}
	return err
}

// withdraw ends a wait, and reports false where the place is there already.
func (p *places) withdraw(module string, turn chan struct{}) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.waiting[module], turn)
	if i < 0 {
		return false
	}
	if p.waiting[module] = slices.Delete(p.waiting[module], i, i+1); len(p.waiting[module]) == 0 {
		delete(p.waiting, module)
		p.turns = slices.DeleteFunc(p.turns, func(m string) bool { return m == module })
	}
	return true
}

// leave passes a place on.
func (p *places) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.turns) == 0 {
		p.free++
		return
	}
	module := p.turns[0]
	p.turns = p.turns[1:]
	first, rest := p.waiting[module][0], p.waiting[module][1:]
	if len(rest) == 0 {
		delete(p.waiting, module)
	} else {
		p.waiting[module] = rest
		p.turns = append(p.turns, module)
	}
	close(first)
}
