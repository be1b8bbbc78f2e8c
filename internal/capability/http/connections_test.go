package http_test

import (
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"

	httpcap "github.com/toolsrv/toolsrv/internal/capability/http"
)

// A room counts connections, and has room for as many as its field most says.
type room struct {
	mu    sync.Mutex
	most  int
	n     int
	given chan struct{} // gets a value for each connection that is given back
}

func newRoom(most int) *room { return &room{most: most, given: make(chan struct{}, 1000)} }

func (r *room) Take() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n == r.most {
		return false
	}
	r.n++
	return true
}

func (r *room) Give() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n--
	r.given <- struct{}{}
}

func (r *room) open() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n
}

func counted(t *testing.T, url string, c *httpcap.Connections) *httpcap.Permission {
	t.Helper()
	rule := httpcap.Rule{Granted: []string{url}, Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	g, err := httpcap.New([]string{url}, []httpcap.Rule{rule}, httpcap.Options{Network: &network{}, Connections: c})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestConnectionsAreBounded makes calls keep connections: idle ones are closed to make room for other calls, and used ones are not.
// Proves: A service can't use up the host
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			entered <- struct{}{}
			<-leave
		}
	})
	r := newRoom(2)
	all := httpcap.NewConnections(r)
	for range 5 {
		c := begin(t, counted(t, url, all))
		defer c.ABI.End()
		if in := c.send(t, outgoing{URL: url + "/"}); in.Status != 200 {
			t.Fatalf("beside idle connections: got %s", in.whole)
		}
	}
	var waiting sync.WaitGroup
	for range 2 {
		waiting.Go(func() {
			if in := get(t, counted(t, url, all), url+"/wait"); in.Status != 200 {
				t.Errorf("a request that was under way: got %s", in.whole)
			}
		})
		<-entered
	}
	if in := get(t, counted(t, url, all), url+"/"); in.Code != "unavailable" || !strings.Contains(in.Message, "no room for another connection") {
		t.Errorf("beside two connections in use: got %s", in.whole)
	}
	close(leave)
	waiting.Wait()
	if in := get(t, counted(t, url, all), url+"/"); in.Status != 200 {
		t.Errorf("after they have ended: got %s", in.whole)
	}
	if in := get(t, counted(t, strings.Replace(url, "127.0.0.1", "127.0.0.2", 1), all), strings.Replace(url, "127.0.0.1", "127.0.0.2", 1)); in.Code != "connect" {
		t.Errorf("where nobody listens: got %s", in.whole)
	}
	if n := r.open(); n > 0 {
		t.Errorf("%d connections are counted, and no call has any", n)
	}
}
