package toolset

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestSearchesTakeTurns makes a search wait while others run, for a while at most.
func TestSearchesTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table, err := wasmtools.NewRouteTable()
		if err != nil {
			t.Fatal(err)
		}
		s := New(table, Options{Search: SearchAlways})
		defer s.Close()
		for range cap(s.searches) {
			if err := s.enterSearch(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		for want, ctx := range map[wasmtools.Code]context.Context{wasmtools.CodeOverloaded: t.Context(), wasmtools.CodeCancelled: gone} {
			if err, ok := errors.AsType[*wasmtools.Error](s.enterSearch(ctx)); !ok || err.Code != want {
				t.Errorf("got %v, want %s", err, want)
			}
		}
		go func() { <-s.searches }()
		if err := s.enterSearch(t.Context()); err != nil {
			t.Errorf("one has ended: %v", err)
		}
	})
}
