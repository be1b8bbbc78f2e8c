package invoker_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/toolsrv/toolsrv/internal/invoker"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A slowBody has sent a part of its bytes. Its reader waits for the rest until it is hurried.
type slowBody struct {
	io.Reader
	waits, hurried chan struct{}
}

func (b *slowBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		close(b.waits)
		<-b.hurried
		return 0, os.ErrDeadlineExceeded
	}
	return n, err
}

// TestSlowBodies makes clients send only a part of their small arguments. All of these together stay within their bound: if a client needs more,
// the arguments of a slow one are given up. If no client is slow, the new one is refused. Arguments of 4 KiB need none of that memory.
// Proves: Limits hold, one by one and in sum
func TestSlowBodies(t *testing.T) {
	t.Parallel()
	const each = 40 << 10
	var mu sync.Mutex
	var slow []*slowBody
	v := invoker.New(invoker.Options{Memory: 512 << 10, Hurry: func() bool { // a quarter of this, 128 KiB, is for small arguments
		mu.Lock()
		defer mu.Unlock()
		if len(slow) == 0 {
			return false
		}
		close(slow[0].hurried)
		slow = slow[1:]
		return true
	}})
	begin := func() *invoker.Invocation {
		route := invoker.RouteTo(tool("echo", echo))
		route.Tool.MaxInput = 64 << 10
		i, err := v.Begin(route, call(""))
		if err != nil {
			t.Error(err)
		}
		return i
	}
	ended := make(chan error, 3)
	for n := range 3 {
		body := &slowBody{strings.NewReader(strings.Repeat(" ", 8<<10)), make(chan struct{}), make(chan struct{})}
		go func() {
			i := begin()
			err := i.Read(body, each+7) // as many bytes as the others
			i.End(err)
			ended <- err
		}()
		select {
		case <-body.waits:
		case err := <-ended:
			t.Fatalf("slow arguments %d: %v", n, err)
		}
		mu.Lock()
		slow = append(slow, body)
		mu.Unlock()
	}
	whole := `{"n":1` + strings.Repeat(" ", each) + `}`
	var held []*invoker.Invocation
	for n := range 3 {
		i := begin()
		if err := i.Read(strings.NewReader(whole), int64(len(whole))); err != nil {
			t.Fatalf("arguments %d, beside slow ones: %v", n, err)
		}
		held = append(held, i)
		if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("slow arguments %d ended with %v", n, err)
		}
	}
	refused := begin()
	if err := refused.Read(strings.NewReader(whole), int64(len(whole))); codeOf(err) != wasmtools.CodeOverloaded {
		t.Errorf("arguments beside others that have arrived: got %v, want overloaded", err)
	}
	refused.End(nil)
	least := begin()
	if err := least.Read(strings.NewReader(strings.Repeat(" ", 4095)), 4095); err != nil {
		t.Errorf("4 KiB: got %v", err)
	}
	least.End(nil)
	for _, i := range held {
		i.End(nil)
	}
	i := begin()
	if err := i.Read(strings.NewReader(whole), int64(len(whole))); err != nil {
		t.Errorf("afterwards: got %v", err)
	}
	i.End(nil)
}
