package sandbox

import (
	"errors"
	"testing"

	"github.com/toolsrv/toolsrv/runtime/compile"
	"github.com/toolsrv/toolsrv/runtime/instrument"
)

// TestLoadNeverCompiles has code under a name that wazero does not look for: that must not make the server compile a module.
func TestLoadNeverCompiles(t *testing.T) {
	t.Parallel()
	e, release := held(t)
	release()
	f := e.foundry
	module := []byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x0a\x04\x01\x02\x00\x0b")
	scratch, err := f.cache.Scratch()
	if err != nil {
		t.Fatal(err)
	}
	made, err := compile.Here(scratch, module, 1)
	if err != nil {
		t.Fatal(err)
	}
	wrong := compile.File{Name: "0" + made.Name[1:], Code: made.Code}
	if made.Name[0] == '0' {
		wrong.Name = "1" + made.Name[1:]
	}
	if n, err := f.hand(sum{}, module, wrong, &instrument.Rewritten{}); n != nil || !errors.Is(err, compile.ErrDisk) || !errors.Is(err, errNotFound) {
		t.Errorf("got %v, %v, want %v", n, err, errNotFound)
	}
}
