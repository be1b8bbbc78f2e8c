package weigh_test

import (
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/instrument/internal/weigh"
)

// FuzzWeigh weighs the code of functions as it is. What Rewrite accepts has a weight; weighing neither panics nor takes long, whatever the types on
// the operand stack are.
// Proves: Compiling is bounded
func FuzzWeigh(f *testing.F) {
	for _, s := range shapes() {
		if module := s.make(5, 3); len(module) < 4096 {
			f.Add(module)
		}
	}
	f.Fuzz(func(t *testing.T, module []byte) {
		begun := time.Now()
		r, err := rewrite(module)
		if took := time.Since(begun); took > time.Minute {
			t.Fatalf("%d bytes took %v", len(module), took)
		}
		if err == nil && (r.Weight.Nanos < 0 || r.Weight.Bytes < 0 || r.Weight.Nanos > 60e9) {
			t.Fatalf("weight %+v", r.Weight)
		}
	})
}

// TestAdd shows that times add up, and that the larger number of bytes counts.
func TestAdd(t *testing.T) {
	t.Parallel()
	got := weigh.Weight{Nanos: 3, Bytes: 5}.Add(weigh.Weight{Nanos: 4, Bytes: 2})
	if want := (weigh.Weight{Nanos: 7, Bytes: 5}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
