package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/runtime/codecache"
	"github.com/toolsrv/toolsrv/runtime/compile"
	"github.com/toolsrv/toolsrv/runtime/instrument"
)

// What compiling a module in a process of its own may take: helperTimes what was predicted, with helperBase for a slow processor, and
// helperRoom.
const (
	helperMemory = 1 << 30
	helperTimes  = 4
	helperBase   = 5 * time.Second

	// serverMemory is what the server itself takes while it has a module compiled, in bytes.
	serverMemory = 56 << 20
)

// helperRoom returns how many bytes of memory a process that compiles may have, of those that the machine has: helperMemory at most, and no
// more than what leaves room for the server.
func helperRoom(machine int64) int64 {
	return min(helperMemory, max(machine/4, machine-max(serverMemory, machine/16*5)))
}

// limitOf returns what compiling a rewritten module may take.
func limitOf(r *instrument.Rewritten) compile.Limit {
	return compile.Limit{CPU: helperBase + helperTimes*r.Weight.Time()}
}

// apart has a process of its own compile a module. It reports false where no process can: then weighing the module has to do. Without a
// scratch directory, the module is only tried. An error that is not the module's is compile.ErrDisk, compile.ErrNoMemory or errClosing.
func (f *foundry) apart(of sum, scratch string, module []byte, most compile.Limit) (m compile.File, done bool, err error) {
	if f.pool == nil {
		return m, false, nil
	}
	m, err = f.pool.Compile(scratch, module, most)
	if errors.Is(err, compile.ErrUnavailable) {
		f.warn(notApart, err)
		return m, false, nil
	}
	if errors.Is(err, compile.ErrClosed) {
		err = errClosing
	}
	if much := (*compile.TooMuch)(nil); errors.As(err, &much) {
		f.bar(of, much)
	}
	return m, true, err
}

// barred are modules that broke a bound, for where the cache can't keep that. The zero value is ready to use.
type barred struct {
	mu   sync.Mutex
	sums map[sum]*compile.TooMuch
}

// mostBarred is how many modules are remembered in memory, 100 bytes each.
const mostBarred = 4096

// barKey is the key of the entry that says that a module broke a bound. Like the code's, it differs between versions.
func (f *foundry) barKey(of sum) codecache.Key {
	return codecache.KeyOf(f.host, fmt.Sprint(instrument.RewriterVersion), string(of[:]), "barred")
}

// bar remembers that a module broke a bound, with the cache if there is one.
func (f *foundry) bar(of sum, much *compile.TooMuch) {
	f.barred.mu.Lock()
	if f.barred.sums == nil || len(f.barred.sums) >= mostBarred {
		f.barred.sums = map[sum]*compile.TooMuch{}
	}
	f.barred.sums[of] = much
	f.barred.mu.Unlock()
	if f.cache == nil {
		return
	}
	text, err := json.Marshal(much)
	if err == nil {
		err = f.cache.Put(f.barKey(of), text)
	}
	if err != nil {
		f.warn(notKept, err)
	}
}

// isBarred returns the error of a module that broke a bound, or nil. One that broke a bound of memory may be tried again where it can
// have more.
func (f *foundry) isBarred(of sum) error {
	if f.pool == nil {
		return nil
	}
	f.barred.mu.Lock()
	much := f.barred.sums[of]
	f.barred.mu.Unlock()
	if much == nil && f.cache != nil && f.cache.Has(f.barKey(of)) {
		parts, err := f.cache.Get(f.barKey(of))
		if err != nil || len(parts) != 1 || json.Unmarshal(parts[0], &much) != nil {
			return nil // it is found out anew
		}
	}
	if much == nil || much.Bytes > 0 && much.Bytes < f.pool.Memory() {
		return nil
	}
	return much
}
