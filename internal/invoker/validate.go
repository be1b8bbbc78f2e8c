package invoker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/toolsrv/toolsrv/internal/rates"
	"github.com/toolsrv/toolsrv/internal/schemas"
	"github.com/toolsrv/toolsrv/internal/turns"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/misfit"
)

// Validation needs up to a hundred times the memory of the arguments, if they consist of small values, and up to half a second. A tool's author and a
// client can cause that, and no limit of the tool applies yet. More checks at a time than there are processors would not be faster, but need more
// memory and make others wait. So an expensive check needs one of a few places. Modules take turns for these, and so do callers of one module. A
// check that needs more memory than its place includes takes it from the memory of tools.
const (
	// free is the size in bytes up to which arguments are checked without a place, as long as the check is cheap.
	free = 1 << 10
	// patience is how long a validation waits for its place and its room.
	patience = 5 * time.Second
	// leastSpared is the least memory in bytes that an expensive place includes: enough for small arguments.
	leastSpared = 2 << 20
)

// A checker has the methods of *schema.Schema that a validator needs.
type checker interface {
	Validate(body []byte) ([]byte, error)
	ValidateLittle(body []byte) (valid []byte, ok bool, err error)
	ValidateWithin(body []byte, memory int64) (valid []byte, ok bool, err error)
	Need(body []byte) int64
}

// A validator checks the arguments of all calls.
type validator struct {
	brief  *turns.Places[rates.Caller, string] // places for arguments of up to 64 KiB, as long as the check is cheap
	costly *turns.Places[rates.Caller, string] // places for all other checks
	vast   *turns.Places[rates.Caller, string] // places for checks that have memory, or wait for it, before they get an expensive place
	spared int64                               // bytes that an expensive check may take without reserving memory
	room   func(ctx context.Context, bytes int64) (give func(), err error)
}

// newValidator returns a validator for calls that may hold a number of bytes of arguments. With little memory it runs fewer expensive checks at a
// time.
func newValidator(memory int64, room func(ctx context.Context, bytes int64) (give func(), err error)) *validator {
	n := int64(runtime.GOMAXPROCS(0))
	costly := max(1, n*min(memory, defaultMemory)/defaultMemory)
	return &validator{
		brief: turns.New[rates.Caller, string](int(n)), costly: turns.New[rates.Caller, string](int(costly)), vast: turns.New[rates.Caller, string](int(costly)),
		spared: max(leastSpared, memory/4/costly), room: room,
	}
}

// validate checks the arguments of a call, and returns them with their defaults.
func (v *validator) validate(ctx context.Context, t *wasmtools.Tool, path string, call *wasmtools.Call) (valid []byte, err error) {
	valid, err = v.check(ctx, (*schemas.Schema)(t.Parameters), cmp.Or(t.Digest, path), call)
	if misfit, ok := errors.AsType[*misfit.Error](err); ok {
		err = &wasmtools.Error{Code: wasmtools.CodeInvalidArguments, Message: misfit.Message, Violations: misfit.Violations}
	}
	return valid, err
}

func (v *validator) check(ctx context.Context, s checker, module string, call *wasmtools.Call) (valid []byte, err error) {
	if len(call.Arguments) <= small {
		var ok bool
		if len(call.Arguments) <= free {
			valid, ok, err = s.ValidateLittle(call.Arguments)
		} else {
			valid, ok, err = v.little(ctx, s, module, call)
		}
		if ok {
			return valid, err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errBusy)
	defer cancel()
	if v.room != nil {
		for need := s.Need(call.Arguments); ; need = 2 * max(need, v.spared) {
			if valid, ok, err := v.within(ctx, s, module, call, need); ok {
				return valid, err
			}
		}
	}
	by := rates.CallerOf(call)
	if err := enter(ctx, v.costly, by, module, call); err != nil {
		return nil, err
	}
	defer v.costly.Leave(by, module)
	return s.Validate(call.Arguments)
}

// within is ValidateWithin in one of the places for expensive checks. ok is false if the check needs more memory.
func (v *validator) within(ctx context.Context, s checker, module string, call *wasmtools.Call, need int64) (valid []byte, ok bool, err error) {
	by := rates.CallerOf(call)
	// A check that waits for memory holds no expensive place, and few checks have memory at a time.
	if need > v.spared {
		if err := enter(ctx, v.vast, by, module, call); err != nil {
			return nil, true, err
		}
		defer v.vast.Leave(by, module)
		give, err := v.take(ctx, call, need)
		if err != nil {
			return nil, true, err
		}
		defer give()
	}
	if err := enter(ctx, v.costly, by, module, call); err != nil {
		return nil, true, err
	}
	defer v.costly.Leave(by, module)
	return s.ValidateWithin(call.Arguments, max(need, v.spared))
}

// take reserves memory for a check. A nested call does not wait: its outer calls may hold such memory, and so may those of all other waiting calls.
func (v *validator) take(ctx context.Context, call *wasmtools.Call, bytes int64) (give func(), err error) {
	waiting := ctx
	if call.Outer != nil {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeoutCause(ctx, 0, errNoRoom)
		defer cancel()
	}
	give, err = v.room(waiting, bytes)
	switch {
	case err == nil:
		return give, nil
	case errors.Is(err, ErrTooMuch):
		return nil, &wasmtools.Error{Code: wasmtools.CodeInputTooLarge, Err: fmt.Errorf("checking it takes more than %d bytes", bytes/2),
			Message: "The arguments have too many values: checking them takes more memory than the service has. Send less at a time"}
	case errors.Is(err, errBusy):
		return nil, errNoRoom
	}
	return nil, ended(err)
}

var (
	errBusy   = &wasmtools.Error{Code: wasmtools.CodeOverloaded, Message: "Too many calls are having their arguments checked; try again later"}
	errNoRoom = &wasmtools.Error{Code: wasmtools.CodeOverloaded, Message: "Other calls use the memory that checking the arguments needs; try again later"}
)

// ended returns the error for a call whose wait was ended by its context. cause is the context's cause.
func ended(cause error) error {
	if busy, ok := errors.AsType[*wasmtools.Error](cause); ok {
		return busy
	}
	return &wasmtools.Error{Code: wasmtools.CodeCancelled, Err: cause}
}

// little is ValidateLittle in one of the places for brief checks.
func (v *validator) little(ctx context.Context, s checker, module string, call *wasmtools.Call) (valid []byte, ok bool, err error) {
	by := rates.CallerOf(call)
	if err := enter(ctx, v.brief, by, module, call); err != nil {
		return nil, true, err
	}
	defer v.brief.Leave(by, module)
	return s.ValidateLittle(call.Arguments)
}

// enter takes a place. leave gives it back. It waits for some seconds, but not after ctx is done, nor after the end of the outer call.
func enter(ctx context.Context, p *turns.Places[rates.Caller, string], by rates.Caller, module string, call *wasmtools.Call) error {
	if p.Try(by, module) {
		return nil
	}
	wait := patience
	if outer, ok := call.Outer.(interface{ Ends() time.Time }); ok {
		wait = min(wait, time.Until(outer.Ends()))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait, errBusy)
	defer cancel()
	if err := p.Enter(ctx, by, module); err != nil {
		return ended(err)
	}
	return nil
}
