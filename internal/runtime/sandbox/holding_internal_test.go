package sandbox

import (
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/account"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// TestHolding compares what programs hold, by their own figures, with what the account says that all hold together. It also asks while
// they are called.
func TestHolding(t *testing.T) {
	t.Parallel()
	e, p := poolEngine(t, Config{Memory: 256 << 20}, "hostile/hoard")
	var tools []*Tool
	for _, p := range append(kin(t, e, hoard(t), 2), p) {
		tools = append(tools, p.Tool("x", 20, limits.Limits{Timeout: time.Minute, Concurrency: 2}))
	}
	sum := func() (memory, mappings int64) {
		ids := map[ID]bool{}
		for _, tool := range tools {
			h := tool.Holding()
			if ids[h.Program] || ids[h.Code] && h.Code != h.Program {
				t.Error("two programs have the same ID")
			}
			ids[h.Program], ids[h.Code] = true, true
			memory, mappings = memory+h.Memory+h.Base, mappings+h.Mappings+h.CodeMappings
		}
		return memory, mappings
	}
	rest := func(when string) {
		t.Helper()
		memory, mappings := sum()
		if held := e.account.Held(account.Memory) - e.account.Held(account.Manifests); memory != held {
			t.Errorf("%s: the programs hold %d bytes, the account %d", when, memory, held)
		}
		if held := e.account.Held(account.Mappings); mappings != held {
			t.Errorf("%s: the programs hold %d mappings, the account %d", when, mappings, held)
		}
	}
	rest("at first")
	most := make([]int64, len(tools))
	watched, called := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for {
			for i, tool := range tools {
				most[i] = max(most[i], tool.Holding().Memory)
			}
			select {
			case <-called:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	var wait sync.WaitGroup
	for _, tool := range tools[1:] {
		for range 2 {
			wait.Go(func() {
				for range 3 {
					if _, err := tool.Call(t.Context(), CallSpec{}); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wait.Wait()
	close(called)
	<-watched
	for i, got := range most {
		if i == 0 && got > 0 || i > 0 && got < 20<<20 {
			t.Errorf("tool %d holds at most %d bytes", i, got)
		}
	}
	rest("after calls")
	for _, tool := range tools[1:] {
		if h := tool.Holding(); h.CodeMemory == 0 || h.Memory == 0 {
			t.Errorf("a tool that was called holds %+v", h)
		}
	}
	e.reclaim(nil, account.Memory, e.account.Most(account.Memory, true))
	rest("after all was taken back")
}
