package foundry

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/toolsrv/toolsrv/internal/runtime/account"
	"github.com/toolsrv/toolsrv/internal/runtime/compile"
	"github.com/toolsrv/toolsrv/internal/runtime/instrument"
)

// TestLoadNeverCompiles stores code under a name that wazero does not look for. The server must not compile the module because of that.
// Proves: Compiling is bounded
func TestLoadNeverCompiles(t *testing.T) {
	t.Parallel()
	f := open(t).furnace
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

// TestRefusalIsRemembered loads a module that the rewriter refuses, which can take seconds. Then the test changes the remembered error. The next load
// returns that error, so it has not rewritten the module again.
// Proves: Compiling is bounded
func TestRefusalIsRemembered(t *testing.T) {
	t.Parallel()
	module := []byte("\x00asm\x01\x00\x00\x00\x01\x06\x01\x60\x01\x7f\x01\x7f\x03\x02\x01\x00\x05\x03\x01\x00\x01" +
		"\x07\x19\x02\x06memory\x02\x00\x0ctoolsrv_call\x00\x00\x0a\x06\x01\x04\x00\x06\x40\x0b") // instruction 0x06
	of := sha256.Sum256(module)
	for name, dir := range map[string]string{"cache": t.TempDir(), "no cache": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := func() *Foundry {
				f, release := held(t, dir)
				release()
				return f
			}
			f := begin()
			refused := func(f *Foundry, want string) {
				t.Helper()
				if _, err := f.NewCode(of, "a digest", module, NewSource(f.account, module)); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want an error with %q", err, want)
				}
			}
			refused(f, "instruction 0x6 is not supported")
			refused(f, "instruction 0x6 is not supported")
			if got := f.furnace.barred.sums[of].Refused; !strings.Contains(got, "instruction 0x6") {
				t.Fatalf("%q is remembered", got)
			}
			f.furnace.bar(of, bar{Refused: "as it was"})
			refused(f, "as it was")
			if later := begin(); dir != "" {
				refused(later, "as it was")
			} else {
				refused(later, "instruction 0x6 is not supported")
			}
		})
	}
}

// nothing is a Reclaim that finds nothing idle.
func nothing(<-chan struct{}, account.Kind, int64) {}

// TestClaim checks that on a small machine the memory of compiling processes is counted together with that of the programs. A module that needs
// more than predicted waits for that memory, and is not compiled while calls keep it.
// Proves: Compiling is bounded
func TestClaim(t *testing.T) {
	t.Parallel()
	const small, large, most = compile.SmallBytes, 2 * compile.SmallBytes, 4 * compile.SmallBytes
	const calls = most / 8 // memory that is left for processes
	for name, c := range map[string]struct {
		tight, sure bool
		bytes, held int64
		frees       bool // a call ends while the claim waits
		took        int64
		refused     bool
	}{
		"a small module":           {true, true, small, most, false, 0, false},
		"where there is plenty":    {false, true, large, most, false, 0, false},
		"as predicted":             {true, false, large, 0, false, large, false},
		"as predicted beside some": {true, false, large, large, false, most - calls - large, false},
		"as predicted beside many": {true, false, large, most, false, 0, false},
		"more than predicted":      {true, true, large, small, false, large, false},
		"more than there is":       {true, true, 2 * most, 0, false, most - calls, false},
		"until a call ends":        {true, true, large, most, true, large, false},
		"as long as calls run":     {true, true, large, most, false, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &Foundry{account: account.New(map[account.Kind]int64{account.Memory: most}), stop: t.Context(), reclaim: nothing}
				f.account.Add(account.Memory, c.held)
				held := c.held
				if c.frees {
					held = 0
					go f.account.Give(account.Memory, c.held)
				}
				give, err := f.claimFor(c.tight)(c.bytes, c.sure)
				if errors.Is(err, compile.ErrNoMemory) != c.refused {
					t.Fatalf("got %v, want it refused: %v", err, c.refused)
				}
				synctest.Wait()
				if took := f.account.Held(account.Memory) - held; took != c.took {
					t.Errorf("%d bytes were taken, want %d", took, c.took)
				}
				if err == nil {
					give()
				}
				if now := f.account.Held(account.Memory); now != held {
					t.Errorf("%d bytes are held in the end, want %d", now, held)
				}
			})
		})
	}
}

// TestClaimsInTurn lets a second large module wait until the first is compiled. Until then, it takes no memory from calls.
// Proves: Compiling is bounded
func TestClaimsInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const bytes, most = 2 * compile.SmallBytes, 8 * compile.SmallBytes
		stop, end := context.WithCancel(t.Context())
		f := &Foundry{account: account.New(map[account.Kind]int64{account.Memory: most}), stop: stop, reclaim: nothing}
		claim := f.claimFor(true)
		give, err := claim(bytes, false)
		if err != nil {
			t.Fatal(err)
		}
		errs := make(chan error, 2)
		for range 2 {
			go func() {
				give, err := claim(bytes, false)
				if err == nil {
					defer give()
					<-stop.Done()
				}
				errs <- err
			}()
		}
		for range 2 {
			synctest.Wait()
			if held := f.account.Held(account.Memory); held != bytes {
				t.Errorf("%d bytes are held, want %d", held, bytes)
			}
			give()
			give = func() {}
		}
		end()
		if served := <-errs; served == nil {
			served = <-errs
			if served != nil && !errors.Is(served, compile.ErrClosed) {
				t.Errorf("got %v, want %v", served, compile.ErrClosed)
			}
		}
	})
}
