package http_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"

	httpcap "github.com/toolsrv/toolsrv/internal/capability/http"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/runtime/hostabi"
)

// plainly starts a server that answers every request in the same way without allocating. It returns the server's address, and a count of its
// connections.
func plainly(t *testing.T) (url string, connections func() int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	accepted := make(chan struct{}, 1000)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- struct{}{}
			go func() {
				defer c.Close()
				answer, in, n := []byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\nan answer"), make([]byte, 4096), 0
				for {
					more, err := c.Read(in[n:])
					if err != nil {
						return
					}
					if n += more; bytes.HasSuffix(in[:n], []byte("\r\n\r\n")) {
						n = 0
						if _, err := c.Write(answer); err != nil {
							return
						}
					}
				}
			}()
		}
	}()
	return "http://" + l.Addr().String(), func() int { return len(accepted) }
}

// TestPriceOfRequests compares the allocations of a request over a kept connection with those of Go's own client: 74 and 45 were measured.
// Go's client does less to find data left on a connection, and neither reads a guest's request nor checks a grant. The test is not
// parallel, because it counts what the whole process allocates.
func TestPriceOfRequests(t *testing.T) {
	if testkit.Race(t) {
		t.Skip("the race detector allocates")
	}
	url, connections := plainly(t)
	head, err := json.Marshal(outgoing{Method: "GET", URL: url})
	if err != nil {
		t.Fatal(err)
	}
	c := begin(t, grant(t, spec{Rule: httpcap.Rule{Granted: []string{url}, Requests: 1000}}))
	defer c.ABI.End()
	set := httpcap.Set()
	function := func(name string) *hostabi.Function {
		return &set.Functions[slices.IndexFunc(set.Functions, func(f hostabi.Function) bool { return f.Name == name })]
	}
	send, read, memory := function("send"), function("answer_read"), make([]byte, 4096)
	ours := testing.AllocsPerRun(200, func() {
		c.Memory = memory[:copy(memory, head)]
		n := int32(uint32(c.Do(send, 0, 0, uint64(len(head)), uint64(len(head)), 0)))
		if n < 0 {
			t.Fatalf("it fails: %d", n)
		}
		c.Memory = memory[:n]
		c.Do(read, 0, 0)
		if !bytes.HasSuffix(c.Memory, []byte("an answer")) {
			t.Fatalf("got %q", c.Memory)
		}
	})
	if n := connections(); n != 1 {
		t.Errorf("200 requests of a call took %d connections, want 1", n)
	}
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	theirs := testing.AllocsPerRun(200, func() {
		answer, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, answer.Body); n != 9 || err != nil {
			t.Fatal(n, err)
		}
		answer.Body.Close()
	})
	t.Logf("a request allocates %v times, and one of Go's client %v times", ours, theirs)
	if ours > 1.8*theirs {
		t.Errorf("a request allocates %v times, want no more than 1.8 times the %v of Go's client", ours, theirs)
	}
}
