package tokens_test

import (
	"path/filepath"
	"testing"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/memory"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/tokens"
)

// TestMadeElsewhere lets another process make the first token of a state: from then on, this process lets nobody in without a token, even if
// somebody has emptied the state, and even after a restart.
func TestMadeElsewhere(t *testing.T) {
	t.Parallel()
	store, mark := memory.New(), filepath.Join(t.TempDir(), "tokens.made")
	one := open(t, store)
	two := tokens.Open(store, tokens.Options{Mark: mark})
	t.Cleanup(func() { _ = two.Close() })
	verifier := func(s *tokens.Store) *tokens.Verifier {
		v, err := tokens.NewVerifier(s, nil, peer, nil)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if v := verifier(two); !v.Open() {
		t.Fatal("nobody is let in, though no token was made")
	}
	one.add("a", "*")
	testkit.Until(t, "the token is known elsewhere", func() bool { return two.Len() == 1 })
	space := store.Space(tokens.Space)
	for _, key := range []string{"name/a", "issued"} {
		if ok, err := space.Delete(t.Context(), key, state.Any); !ok || err != nil {
			t.Fatalf("delete %s: %t, %v", key, ok, err)
		}
	}
	testkit.Until(t, "it is gone elsewhere", func() bool { return two.Len() == 0 })
	if verifier(two).Open() {
		t.Error("everybody is let in once the state is empty")
	}
	again := tokens.Open(memory.New(), tokens.Options{Mark: mark})
	t.Cleanup(func() { _ = again.Close() })
	if verifier(again).Open() {
		t.Error("everybody is let in after a start with an empty state")
	}
}
