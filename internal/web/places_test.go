package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// holders are callers by their token, including those who need none.
type holders map[string]*wasmtools.Principal

func (h holders) Check(*http.Request) error { return nil }

func (h holders) Principal(r *http.Request, current *wasmtools.Principal) (*wasmtools.Principal, error) {
	if p := h[r.Header.Get("Authorization")]; p != nil {
		return p, nil
	}
	return current, nil
}

// TestPlaces lets strangers, and callers with tokens, take all the places that they can get: there are still some for others, and always for
// administrators.
// Proves: Clients keep nobody out
func TestPlaces(t *testing.T) {
	t.Parallel()
	const most = 64
	who := func(name string, scopes ...string) *wasmtools.Principal {
		p, err := wasmtools.NewPrincipal(name, "test", scopes...)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	boss, err := who("boss").WithRoles(wasmtools.RoleAdminRead)
	if err != nil {
		t.Fatal(err)
	}
	callers := holders{"ann": who("ann", "*"), "ben": who("ben", "*"), "boss": boss}
	places := web.NewPlaces(most)
	mux := web.NewMux(web.Options{Dependencies: []web.Dependency{callers}})
	var leave []func()
	mux.Mount("/", doorFunc(func(x *web.Exchange) {
		give, err := places.Take(x)
		if err != nil {
			x.Fail(err)
			return
		}
		leave = append(leave, give)
		x.Send(http.StatusOK, nil)
	}))
	// take takes as many places as it can get, and returns how many.
	take := func(token, address string) (n int) {
		for ; ; n++ {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set("Authorization", token)
			r.RemoteAddr = address
			w := httptest.NewRecorder()
			if mux.ServeHTTP(w, r); w.Code != http.StatusOK {
				if w.Code != http.StatusServiceUnavailable {
					t.Fatalf("got %d: %s", w.Code, w.Body)
				}
				return n
			}
		}
	}
	for _, step := range []struct {
		name, token, address string
		want                 int
	}{
		{"a stranger", "", "192.0.2.1:1", most / 16},
		{"the same address, from another port", "", "192.0.2.1:2", 0},
		{"an address of an IPv6 network", "", "[2001:db8::1]:1", most / 16},
		{"another of it", "", "[2001:db8::ffff:1]:1", 0},
		{"an address of another network", "", "[2001:db8:0:1::1]:1", most / 16},
		{"ann", "ann", "192.0.2.1:1", most / 2},
		{"ann from elsewhere", "ann", "192.0.2.2:1", 0},
		{"ben gets what is left", "ben", "192.0.2.2:1", most - 3*most/16 - most/2 - most/16},
		{"another stranger", "", "192.0.2.3:1", 0},
		{"an administrator", "boss", "192.0.2.3:1", most / 16},
	} {
		if got := take(step.token, step.address); got != step.want {
			t.Errorf("%s: got %d places, want %d", step.name, got, step.want)
		}
	}
	for _, give := range leave {
		give()
	}
	if got := take("ben", ""); got != most/2 {
		t.Errorf("once all have left: got %d places, want %d", got, most/2)
	}
	crowd := 0
	for n := range 100 {
		crowd += take("", fmt.Sprintf("198.51.100.%d:1", n))
	}
	if want := most/2 - most/16; crowd != want {
		t.Errorf("many strangers: got %d places, want %d", crowd, want)
	}
}
