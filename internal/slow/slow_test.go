package slow_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolsrv/toolsrv/internal/slow"
	"github.com/toolsrv/toolsrv/internal/web"
)

// A door is a door whose requests take as long as their query says.
type door struct{}

func (door) Serve(x *web.Exchange) {
	d, err := time.ParseDuration(x.Request().URL.RawQuery)
	if err != nil {
		panic(err)
	}
	time.Sleep(d) // in a synctest bubble, the sleep takes no real time
	x.SetTool(x.Request().URL.Path[len("/toy.api"):])
	x.Call().Times.Run = d
	x.Send(http.StatusOK, []byte("1"))
}

func newMux() (*web.Mux, *slow.Calls) {
	c := slow.New()
	mux := web.NewMux(web.Options{Observers: []web.Observer{c}})
	mux.Mount("/toy.api", door{})
	return mux, c
}

func call(mux *web.Mux, tool string, took time.Duration) {
	mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "http://localhost/toy.api"+tool+"?"+took.String(), nil))
}

// TestCalls remembers the slowest calls of a tool, for an hour at most.
func TestCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mux, c := newMux()
		call(mux, "", time.Hour/2) // calls nothing
		for i := range 100 {
			call(mux, "/a/b", time.Duration(i%50)*time.Millisecond)
		}
		all := c.List()
		if len(all) != 8 || all[0].Took != 49*time.Millisecond || all[7].Took != 46*time.Millisecond {
			t.Fatalf("got %+v", all)
		}
		first := all[0]
		if first.Tool != "/a/b" || first.Door != "/toy.api" || first.Client != "192.0.2.1" || first.RequestID == "" || fmt.Sprint(first.Phases) != "[{run 49ms}]" {
			t.Errorf("got %+v", first)
		}
		time.Sleep(31 * time.Minute)
		call(mux, "/a/b", time.Millisecond) // another period has begun
		if all := c.List(); len(all) != 9 || all[8].Took != time.Millisecond {
			t.Errorf("got %+v", all)
		}
		time.Sleep(31 * time.Minute)
		if all := c.List(); len(all) != 1 {
			t.Errorf("got %+v", all)
		}
		time.Sleep(61 * time.Minute)
		if all := c.List(); len(all) != 0 {
			t.Errorf("got %+v", all)
		}
	})
}

// TestCallsBound has many tools called from many goroutines: what is remembered stays bounded.
func TestCallsBound(t *testing.T) {
	t.Parallel()
	mux, c := newMux()
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 3000 {
				call(mux, fmt.Sprintf("/a/%d", g*3000+i), 0)
			}
		})
	}
	all.Wait()
	if n := len(c.List()); n < 1000 || n > 256*8 {
		t.Errorf("got %d calls", n)
	}
}
