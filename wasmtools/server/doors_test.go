package server_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/wasmtools/server"
	"github.com/toolsrv/toolsrv/wasmtools/web"
)

// A closing is a door that records when it is closed.
type closing struct {
	name   string
	closed *[]string
	err    error
}

func (d closing) Serve(x *web.Exchange) { x.Send(http.StatusOK, []byte(`"open"`)) }

func (d closing) Close() error {
	*d.closed = append(*d.closed, d.name)
	return d.err
}

// plainDoor has nothing to close.
type plainDoor struct{}

func (plainDoor) Serve(x *web.Exchange) { x.Send(http.StatusOK, []byte(`"open"`)) }

// TestDoorsAreClosed checks that a server closes a program's doors with its own, the last one first, and returns their errors.
func TestDoorsAreClosed(t *testing.T) {
	t.Parallel()
	var closed []string
	of, s, err := open(t, settings(t), core.Options{}, server.Options{Doors: map[string]web.Door{
		"/a.api": closing{"a", &closed, nil}, "/b.api": plainDoor{}, "/c.api": closing{"c", &closed, errors.New("c is stuck")}, "/d.api": closing{"d", &closed, nil},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second Close does nothing
		if err := s.Close(); err == nil || !strings.Contains(err.Error(), "c is stuck") {
			t.Errorf("Close returns %v", err)
		}
	}
	if got := strings.Join(closed, " "); got != "d c a" {
		t.Errorf("closed were %s, want d c a", got)
	}
	if err := of.Close(); err != nil {
		t.Error(err)
	}
}
