package http_test

import (
	"errors"
	"fmt"
	"io"
	stdhttp "net/http"
	"strings"
	"testing"
	"time"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
	"github.com/toolsrv/toolsrv/sdk/go/http"
	"github.com/toolsrv/toolsrv/sdk/go/http/transport"
	"github.com/toolsrv/toolsrv/sdk/go/toolsrvtest"
)

var needs = toolsrv.Needs{HTTP: []string{"https://api.example.com/v1/", "http://*.example.org:8080"}}

// echo answers with what it was asked.
func echo(w stdhttp.ResponseWriter, r *stdhttp.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Add("x-seen", r.Header.Get("X-A"))
	w.Header().Add("X-Seen", strings.Join(r.Header["X-B"], ","))
	if strings.HasSuffix(r.URL.Path, "/gone") {
		w.WriteHeader(stdhttp.StatusGone)
	}
	if strings.HasSuffix(r.URL.Path, "/hangup") {
		toolsrvtest.FailRequest(w, &toolsrv.Failure{Code: "connect", Message: "It hangs up."})
	}
	fmt.Fprintf(w, `{"asked": %q, "type": %q}`, r.Method+" "+r.URL.String()+" "+string(body), r.Header.Get("Content-Type"))
}

// within calls f like a tool with these needs.
func within(t *testing.T, world *toolsrvtest.World, f func(c *toolsrv.Call) error) error {
	t.Helper()
	m := toolsrv.Module{Needs: needs, Tools: []toolsrv.Tool{
		toolsrv.Func("f", "F.", func(c *toolsrv.Call, _ struct{}) (bool, error) { return true, f(c) }),
	}}
	_, err := world.Call(t, m, "f", `{}`)
	return err
}

func TestDo(t *testing.T) {
	t.Parallel()
	type asked struct{ Asked, Type string }
	tests := []struct {
		name string
		do   func(c *toolsrv.Call) (*http.Response, error)
		want asked
	}{
		{"get", func(c *toolsrv.Call) (*http.Response, error) { return http.Get(c, "https://api.example.com/v1/a?b=c") }, asked{"GET https://api.example.com/v1/a?b=c ", ""}},
		{"post", func(c *toolsrv.Call) (*http.Response, error) {
			return http.Post(c, "http://A.b.example.org:8080/", "text/plain", []byte("hi"))
		}, asked{"POST http://A.b.example.org:8080/ hi", "text/plain"}},
		{"post JSON", func(c *toolsrv.Call) (*http.Response, error) {
			return http.PostJSON(c, "https://api.example.com/v1/", map[string]string{"a": "<"})
		}, asked{`POST https://api.example.com/v1/ {"a":"<"}`, "application/json"}},
		{"put", func(c *toolsrv.Call) (*http.Response, error) {
			return http.Do(c, http.Request{Method: "PUT", URL: "https://api.example.com:443/v1", Body: []byte{}, Timeout: time.Microsecond})
		}, asked{"PUT https://api.example.com:443/v1 ", ""}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			err := within(t, &toolsrvtest.World{HTTP: stdhttp.HandlerFunc(echo)}, func(c *toolsrv.Call) error {
				answer, err := test.do(c)
				if err != nil {
					return err
				}
				var got asked
				if err := answer.JSON(&got); err != nil || got != test.want || !answer.OK() {
					t.Errorf("got %+v, %v, want %+v", got, err, test.want)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestHeader(t *testing.T) {
	t.Parallel()
	err := within(t, &toolsrvtest.World{HTTP: stdhttp.HandlerFunc(echo)}, func(c *toolsrv.Call) error {
		header := http.Header{}
		header.Set("x-a", "lost")
		header.Set("X-A", "1")
		header.Add("x-B", "2")
		header.Add("X-b", "3")
		header.Add("X-C", "4")
		header.Del("x-c")
		answer, err := http.Do(c, http.Request{URL: "https://api.example.com/v1/gone", Header: header})
		if err != nil {
			return err
		}
		if got := answer.Header.Values("X-SEEN"); len(got) != 2 || got[0] != "1" || got[1] != "2,3" {
			t.Errorf("got %q, want the fields that were sent", got)
		}
		if got := answer.Header.Get("nothing"); got != "" {
			t.Errorf("got %q for a missing field", got)
		}
		if status, ok := toolsrv.AsType[*http.StatusError](answer.Err()); !ok || status.Status != 410 || status.Error() != "https://api.example.com has answered with status 410" {
			t.Errorf("got %v, want an error with status 410 that names the server", answer.Err())
		}
		return answer.JSON(new(any))
	})
	if _, ok := toolsrv.AsType[*http.StatusError](err); !ok {
		t.Errorf("got %v, want the status", err)
	}
}

// TestFailures has requests that are not sent, or not answered. Each fails with its code.
func TestFailures(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, url, header, code string }{
		{"not declared", "https://other.example.com/", "", "not_granted"},
		{"another port", "https://api.example.com:8443/v1/", "", "not_granted"},
		{"another scheme", "http://api.example.com/v1/", "", "not_granted"},
		{"another path", "https://api.example.com/v10", "", "not_granted"},
		{"the domain itself", "http://example.org:8080/", "", "not_granted"},
		{"a domain that ends alike", "http://badexample.org:8080/", "", "not_granted"},
		{"a user", "https://a:b@api.example.com/v1/", "", "invalid"},
		{"not absolute", "/v1/", "", "invalid"},
		{"the host's header", "https://api.example.com/v1/", "Host", "invalid"},
		{"a header of the connection", "https://api.example.com/v1/", "proxy-authorization", "invalid"},
		{"no answer", "https://api.example.com/v1/hangup", "", "connect"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			err := within(t, &toolsrvtest.World{HTTP: stdhttp.HandlerFunc(echo)}, func(c *toolsrv.Call) error {
				header := http.Header{}
				if test.header != "" {
					header.Set(test.header, "x")
				}
				_, err := http.Do(c, http.Request{URL: test.url, Header: header})
				return err
			})
			if f, ok := toolsrv.AsType[*toolsrv.Failure](err); !ok || f.Code != test.code {
				t.Errorf("got %v, want a failure with the code %s", err, test.code)
			}
		})
	}
	t.Run("no method", func(t *testing.T) {
		t.Parallel()
		err := within(t, &toolsrvtest.World{HTTP: stdhttp.HandlerFunc(echo)}, func(c *toolsrv.Call) error {
			_, err := http.Do(c, http.Request{Method: "G T", URL: "https://api.example.com/v1/"})
			return err
		})
		if f, ok := toolsrv.AsType[*toolsrv.Failure](err); !ok || f.Code != "invalid" {
			t.Errorf("got %v, want invalid", err)
		}
	})
	t.Run("nothing in the world", func(t *testing.T) {
		t.Parallel()
		err := within(t, new(toolsrvtest.World), func(c *toolsrv.Call) error {
			_, err := http.Get(c, "https://api.example.com/v1/")
			return err
		})
		if f, ok := toolsrv.AsType[*toolsrv.Failure](err); !ok || f.Code != "not_granted" {
			t.Errorf("got %v, want not_granted", err)
		}
	})
	t.Run("no world", func(t *testing.T) {
		t.Parallel()
		if _, err := http.Get(new(toolsrv.Call), "https://api.example.com/v1/"); err == nil {
			t.Error("a call without a world has sent something")
		}
	})
	t.Run("a body that has no JSON", func(t *testing.T) {
		t.Parallel()
		_, err := http.PostJSON(new(toolsrv.Call), "https://api.example.com/v1/", func() {})
		if f, ok := toolsrv.AsType[*toolsrv.Failure](err); !ok || f.Code != "invalid" {
			t.Errorf("got %v, want invalid", err)
		}
	})
}

func TestTransport(t *testing.T) {
	t.Parallel()
	handler := stdhttp.NewServeMux()
	handler.HandleFunc("/v1/from", func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
		stdhttp.Redirect(w, r, "/v1/to", stdhttp.StatusFound)
	})
	handler.HandleFunc("/v1/away", func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
		stdhttp.Redirect(w, r, "https://elsewhere.example/", stdhttp.StatusFound)
	})
	handler.HandleFunc("/v1/to", echo)
	err := within(t, &toolsrvtest.World{HTTP: handler}, func(c *toolsrv.Call) error {
		client := transport.Client(c)
		client.Timeout = time.Minute
		request, err := stdhttp.NewRequestWithContext(c, "GET", "https://api.example.com/v1/from", nil)
		if err != nil {
			return err
		}
		request.Header.Set("Accept-Encoding", "gzip") // a header that only the host may set
		answer, err := client.Do(request)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(answer.Body)
		if want := "https://api.example.com/v1/to"; err != nil || !strings.Contains(string(body), want) || answer.Request.URL.String() != want || answer.StatusCode != 200 {
			t.Errorf("got %q, %v, want an answer from %s", body, err, want)
		}
		if _, err := client.Post("https://api.example.com/v1/to", "text/plain", strings.NewReader("hi")); err != nil {
			t.Errorf("a post: %v", err)
		}
		request.Host = "other.example"
		if _, err := (transport.Transport{Call: c}).RoundTrip(request); err == nil {
			t.Error("a request with another Host was sent")
		}
		_, err = client.Get("https://api.example.com/v1/away")
		return err
	})
	var failure *toolsrv.Failure
	if !errors.As(err, &failure) || failure.Code != "not_granted" {
		t.Errorf("a redirect to where the tool may not go: got %v, want not_granted", err)
	}
}
