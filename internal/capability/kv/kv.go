// Package kv lets tools keep values under keys, in a space that the tools of a namespace share and that has a quota.
package kv

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/runtime/hostabi"
	"github.com/toolsrv/toolsrv/wasmtools/capability/answer"
)

// Module is the name of the import module.
const Module = "toolsrv_kv_v1"

// These are what a function is charged in addition to what it copies, in nanoseconds: the work here and in the store, without waiting.
const (
	getCost  = 3_000
	setCost  = 10_000
	listCost = 5_000
	keyCost  = 100 // for each key that is listed
)

// free is the size in bytes up to which the memory of a value is not accounted separately, since it fits into what is counted for each call.
const free = 16 << 10

// Set returns the functions of Module, with their entries in docs/generated/functions.md.
func Set() *hostabi.Set {
	return &hostabi.Set{Module: Module, Functions: []hostabi.Function{
		// (key, key_len)
		// Answers 0 bytes if the key does not exist; otherwise a u64, the version, which is never 0; a u64, when it expires in milliseconds of Unix
		// time, 0 for never; and the value.
		function("get", "ii", getCost, get),
		// (key, key_len, value, value_len, ttl, expect)
		// Answers the new version, a u64. `ttl` is in milliseconds, 0 means forever. `expect` is -1 for any state, 0 if the key must not
		// exist, or the version that it must have; otherwise the code is `conflict`. If the [quota](capabilities.md#keys-and-values) is used
		// up, it is `quota`.
		function("set", "iiiiII", setCost, set),
		// (key, key_len, expect)
		// Answers one byte, 1 if the key existed. `expect` is that of `set`.
		function("delete", "iiI", setCost, remove),
		// (prefix, prefix_len, after, after_len, limit)
		// Answers the keys that begin with the prefix and come after `after`, in the order of their bytes: a byte, 1 if there are more; and for each a
		// u32, its length, and the key. A `limit` of 0 is 1,000, the most.
		function("list", "iiiii", listCost, list),
		answer.Read(),
	}}
}

// A Space is what tools are granted: the keys of a namespace, with a quota, or each caller's own keys in it. It is safe for concurrent use.
type Space struct {
	store     state.Store
	namespace string
	quota     state.Usage
	space     state.Space // nil if each caller has its own space
	immediate bool        // reading never waits
	own       int         // how many callers may have a space of their own; 0 means that they share one
}

// Open returns the space of a namespace in a store, with a quota for what tools write: 0 means no limit. It needs no Close.
func Open(store state.Store, namespace string, quota state.Usage) *Space {
	space := store.Space("kv/" + namespace)
	_, immediate := space.(state.Immediate)
	return &Space{store: store, namespace: namespace, quota: quota, space: space, immediate: immediate}
}

// Equal reports whether other is a space with the same keys and quota.
func (s *Space) Equal(other any) bool {
	o, ok := other.(*Space)
	return ok && o.store == s.store && o.namespace == s.namespace && o.quota == s.quota && o.own == s.own
}

// A use is a call of one function.
type use struct {
	*hostabi.Call
	granted *Space
	space   state.Space // the space that the call uses
	own     *owner      // whose space it is; nil if it is shared
	key     string      // the key, or a prefix of keys
	answer  []byte
	sent    int
}

// function returns a function whose first two parameters are a key. do uses the space, and returns a failure or nil.
func function(name, params string, cost int, do func(u *use, stack []uint64) error) hostabi.Function {
	return hostabi.Function{Name: name, Params: params, Results: "i", Cost: cost, Do: func(c *hostabi.Call, stack []uint64) {
		s, ok := c.Grant().(*Space)
		if !ok {
			f := answer.NotDeclared(c, "kv")
			c.Used(hostabi.Use{Capability: "kv", Target: name, Outcome: f.Code})
			answer.Fail(c, stack, f)
			return
		}
		began := time.Now()
		u := &use{Call: c, granted: s, space: s.space, sent: int(uint32(stack[1]))}
		err := u.bound("key", stack[1])
		if err == nil && s.own > 0 {
			err = u.ofCaller()
		}
		if err == nil {
			u.key = string(c.View(stack[0], stack[1]))
			if err = do(u, stack); err == nil {
				answer.Give(c, stack, u.answer)
			}
		}
		used := hostabi.Use{Capability: "kv", Target: name + " " + u.key, Sent: int64(u.sent), Received: int64(len(u.answer)), Took: time.Since(began)}
		if err != nil {
			f := failure(err)
			used.Outcome, used.Received = f.Code, 0
			answer.Fail(c, stack, f)
		}
		c.Used(used)
	}}
}

// bound returns an error if a key, or a part of one, is longer than a key may be.
func (u *use) bound(what string, length uint64) error {
	if n := uint32(length); n > state.MaxKey {
		return answer.Failf(answer.TooLarge, "The %s has %d bytes; at most %d are allowed.", what, n, state.MaxKey)
	}
	return nil
}

// checkKey returns an error if some tools could not read the key. Unprintable characters are allowed, for example to separate two parts of a key:
// keys are shown only in the log, which escapes them.
func (u *use) checkKey() error {
	switch {
	case u.key == "":
		return answer.Failf(answer.Invalid, "The key is empty.")
	case !utf8.ValidString(u.key):
		return answer.Failf(answer.Invalid, "The key is not valid UTF-8.")
	}
	return nil
}

// take charges for the bytes of a value. If there are many, it accounts for their memory until the function that it returns is called.
func (u *use) take(size int) (give func()) {
	u.Charge(size)
	if size <= free {
		return func() {}
	}
	u.Hold(int64(size))
	return func() { u.Hold(-int64(size)) }
}

func get(u *use, _ []uint64) error {
	if err := u.checkKey(); err != nil {
		return err
	}
	e, found, err := u.read(free)
	if errors.Is(err, state.ErrTooLarge) {
		give := u.take(2 * state.MaxValue) // for the value, and for the answer that contains it
		defer give()
		e, found, err = u.read(state.MaxValue)
	}
	if err != nil || !found {
		u.answer = []byte{}
		return err
	}
	u.answer = binary.LittleEndian.AppendUint64(make([]byte, 0, 16+len(e.Value)), e.Version)
	var expires int64
	if !e.Expires.IsZero() {
		expires = e.Expires.UnixMilli()
	}
	u.answer = append(binary.LittleEndian.AppendUint64(u.answer, uint64(expires)), e.Value...)
	return nil
}

func (u *use) read(most int) (e state.Entry, found bool, err error) {
	u.toRead(func(ctx context.Context) { e, found, err = u.space.Get(ctx, u.key, most) })
	return e, found, err
}

// toRead calls f, which reads. If reading never waits, it skips the preparations for waiting, which take longer than most reads.
func (u *use) toRead(f func(ctx context.Context)) {
	if ctx := u.Context(); u.granted.immediate && ctx.Err() == nil {
		f(ctx)
	} else { // this ends the call if the caller has gone
		u.Wait(f)
	}
}

func set(u *use, stack []uint64) error {
	if err := u.checkKey(); err != nil {
		return err
	}
	size := int(uint32(stack[3]))
	if u.sent += size; size > state.MaxValue {
		return answer.Failf(answer.TooLarge, "The value has %d bytes; at most %d are allowed.", size, state.MaxValue)
	}
	ttl, expect := int64(stack[4]), int64(stack[5])
	if ttl < 0 || ttl > state.MaxTTL.Milliseconds() {
		return answer.Failf(answer.Invalid, "The time to live is %d ms: use 0, which means forever, or 1 to %d.", ttl, state.MaxTTL.Milliseconds())
	}
	value := u.View(stack[2], stack[3]) // the store copies it
	give := u.take(size)
	defer give()
	var version uint64
	var err error
	u.Wait(func(ctx context.Context) {
		if u.own != nil {
			if err = u.own.hold(ctx); err != nil {
				return
			}
		}
		version, err = u.space.Set(ctx, u.key, value, expect, state.SetOptions{TTL: time.Duration(ttl) * time.Millisecond, Quota: u.granted.quota})
		if u.own != nil && err == nil {
			err = u.own.keep(ctx, u.key, version)
		}
	})
	if u.own != nil {
		u.Charge(u.own.looked * placeCost)
	}
	u.answer = binary.LittleEndian.AppendUint64(nil, version)
	return err
}

func remove(u *use, stack []uint64) error {
	if err := u.checkKey(); err != nil {
		return err
	}
	expect := int64(stack[2])
	var deleted bool
	var err error
	u.Wait(func(ctx context.Context) { deleted, err = u.space.Delete(ctx, u.key, expect) })
	u.answer = []byte{0}
	if deleted {
		u.answer[0] = 1
	}
	return err
}

func list(u *use, stack []uint64) error {
	if err := u.bound("key to begin after", stack[3]); err != nil {
		return err
	}
	after, limit := string(u.View(stack[2], stack[3])), int(int32(uint32(stack[4])))
	if limit < 0 {
		return answer.Failf(answer.Invalid, "The limit is %d: use 0, which means %d, or more.", limit, state.MaxPage)
	}
	if limit == 0 || limit > state.MaxPage {
		limit = state.MaxPage
	}
	if limit > free/2/state.MaxKey {
		size := int64(limit * 2 * state.MaxKey) // for the keys, and for the answer that contains them
		u.Hold(size)
		defer u.Hold(-size)
	}
	var keys []string
	var more bool
	var err error
	u.toRead(func(ctx context.Context) { keys, more, err = u.space.List(ctx, u.key, after, limit) })
	size := 1
	for _, key := range keys {
		size += 4 + len(key)
	}
	u.answer = make([]byte, 1, size)
	if more {
		u.answer[0] = 1
	}
	for _, key := range keys {
		u.answer = append(binary.LittleEndian.AppendUint32(u.answer, uint32(len(key))), key...)
	}
	u.Charge(keyCost * len(keys))
	return err
}

// failure returns the failure for a guest. Problems of the store's file are not shown to guests: the store logs them.
func failure(err error) *answer.Failure {
	if f, ok := errors.AsType[*answer.Failure](err); ok {
		return f
	}
	message := err.Error()
	message = strings.ToUpper(message[:1]) + message[1:]
	switch {
	case errors.Is(err, state.ErrConflict):
		return answer.Failf("conflict", "%s.", message)
	case errors.Is(err, state.ErrQuota):
		return answer.Failf("quota", "%s: delete keys, or have the operator raise kv or kv_entries in the grant.", message)
	case errors.Is(err, state.ErrTooLarge):
		return answer.Failf(answer.TooLarge, "%s.", message)
	case errors.Is(err, state.ErrInvalid):
		return answer.Failf(answer.Invalid, "%s.", message)
	}
	return answer.Failf(answer.Unavailable, "Keys and values are not available now: the server's log says why.")
}
