package nothttp_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/nothttp"
)

// TestError sends requests to servers that, in different ways, don't speak HTTP: nothing that they send is shown.
func TestError(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for _, c := range []struct {
		answer string
		other  bool // the error has nothing to do with HTTP
	}{
		{answer: secret + "\r\n"},
		{answer: "220 " + secret + " ESMTP ready\r\n"},
		{answer: "SSH-2.0-" + secret + "\r\n"},
		{answer: "-NOAUTH " + secret + "\r\n"},
		{answer: "HTTP/" + secret + " 200 OK\r\n\r\n"},
		{answer: "HTTP/1.1 " + secret + "\r\n\r\n"},
		{answer: "HTTP/1.1 200 OK\r\n" + secret + "\r\n\r\n"},
		{answer: "HTTP/1.1 200 OK\r\n " + secret + "\r\n\r\n"},
		{answer: "HTTP/1.1 200 OK\r\nContent-Length: " + secret + "\r\n\r\n"},
		{answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: " + secret + "\r\n\r\n"},
		{answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: " + secret + "\r\n\r\n"},
		{answer: "", other: true},
		{answer: "HTTP/1.1 200 OK\r\n", other: true},
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			defer listener.Close()
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = io.CopyN(io.Discard, conn, 16)
			_, _ = io.WriteString(conn, c.answer)
		}()
		q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(q)
		if err == nil {
			answer.Body.Close()
			t.Errorf("%q is taken for HTTP", c.answer)
			continue
		}
		if told := nothttp.Error(err); errors.Is(told, nothttp.ErrAnswer) == c.other || strings.Contains(told.Error(), secret) {
			t.Errorf("%q: got %v", c.answer, told)
		}
	}
	if err := nothttp.Error(nil); err != nil {
		t.Errorf("got %v", err)
	}
}
