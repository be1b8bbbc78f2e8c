package script

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/apart"
	"github.com/toolsrv/toolsrv/internal/script/engine"
)

const (
	// helperSmall is the memory that a helper may have at first, in bytes: enough for most scripts. Such helpers have room of their own, so
	// that they do not wait for the processes of large scripts.
	helperSmall = 64 << 20
	// lookTime is how often a helper is looked at.
	lookTime = 25 * time.Millisecond
)

// Readers bound what the helpers of a Builder take together. They are safe for concurrent use.
type Readers struct {
	each         int64
	small, large *apart.Room
	claim        func(bytes int64) (give func())
}

// NewReaders returns Readers for a machine with that many bytes of memory. claim is called with what a helper takes if the machine has too
// little for all; it may be nil.
func NewReaders(machine int64, claim func(bytes int64) (give func())) *Readers {
	each := max(helperSmall, apart.Memory(machine))
	if claim == nil || each >= apart.Ample {
		claim = func(int64) func() { return func() {} }
	}
	return &Readers{
		each:  each,
		small: apart.NewRoom(max(helperSmall, min(machine/8, int64(runtime.GOMAXPROCS(0)+2)*helperSmall))),
		large: apart.NewRoom(max(each, min(2*apart.Ample, machine/4))),
		claim: claim,
	}
}

// read makes a helper collect the files of a script once there is room for it: a small one, and if that is too little, one that may have all.
func (r *Readers) read(ctx context.Context, b Builder, root, path string, content []byte) (files []engine.File, inputs []string, err error) {
	if !r.small.Take(helperSmall, ctx.Done()) {
		return nil, nil, context.Cause(ctx)
	}
	files, inputs, err = b.help(ctx, root, path, content, helperSmall)
	r.small.Give(helperSmall)
	if _, ok := errors.AsType[*memoryError](err); !ok || r.each <= helperSmall {
		return files, inputs, err
	}
	if !r.large.Take(r.each, ctx.Done()) {
		return nil, nil, context.Cause(ctx)
	}
	defer r.large.Give(r.each)
	defer r.claim(r.each)()
	return b.help(ctx, root, path, content, r.each)
}

// watch calls end once a process takes more memory than that, until the returned function is called, which says whether it did. Where the
// system does not tell, it does nothing.
func watch(pid int, most int64, end func()) (done func() (broke bool)) {
	m, err := apart.OpenMeter(pid)
	if err != nil {
		return func() bool { return false }
	}
	var looking sync.WaitGroup
	stop, broke := make(chan struct{}), false
	looking.Go(func() {
		defer m.Close()
		tick := time.NewTicker(lookTime)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				if u, err := m.Look(); err == nil && u.Bytes > most {
					broke = true
					end()
					return
				}
			}
		}
	})
	return func() bool {
		close(stop)
		looking.Wait()
		return broke
	}
}
