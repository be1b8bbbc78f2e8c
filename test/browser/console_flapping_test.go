package browser_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"
)

// TestConsoleFlapping has a tool change all the time, faster than the page can read the list of tools. The page shows new lists all the same, and reads
// one at a time.
func TestConsoleFlapping(t *testing.T) {
	t.Parallel()
	behind, err := url.Parse(serve(t, "", add()))
	if err != nil {
		t.Fatal(err)
	}
	pages := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(behind)
		r.Out.Host = r.In.Host // the time between two lists, as the page has it
	}}
	var asked, answered, together atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/events":
			w.Header().Set("Content-Type", "text/event-stream")
			for i := 0; r.Context().Err() == nil; i++ {
				_, _ = fmt.Fprintf(w, "event: tool.changed\ndata: {\"id\":\"%d\",\"kind\":\"tool.changed\",\"tool\":\"/math/add\"}\n\n", i)
				w.(http.Flusher).Flush()
				time.Sleep(150 * time.Millisecond)
			}
		case "/tools":
			n := asked.Add(1)
			if n-answered.Load() > 1 {
				together.Add(1)
			}
			defer answered.Add(1)
			select {
			case <-r.Context().Done():
			case <-time.After(700 * time.Millisecond):
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, fmt.Sprintf(`[{"name":"add","namespace":"math","path":"/math/add","operation_id":"math-add","description":"The list was read %d times.","parameters":{},"result":null}]`, n))
		default:
			pages.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	p := open(t, s.URL, "/console")
	p.tolerate("/admin/v1/self")
	p.until(`/The list was read ([3-9]|\d\d) times/.test(document.body.innerText)`)
	if n := together.Load(); n > 1 { // the page's first list and the first change may come at the same time
		t.Errorf("%d of %d lists were requested before the previous one had come", n, asked.Load())
	}
}
