//go:build unix

package main_test

import (
	"bufio"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"
)

// A reflector is a server that sends back the key that it was sent, in a form that depends on the path: /json, /gzip and so on. None of these forms
// is invented: debugging pages, error messages, redirects and proxies use all of them.
type reflector struct {
	*httptest.Server
	elsewhere *httptest.Server // the origin that redirects lead to, which records the requests that it gets

	mu    sync.Mutex
	keys  []string // the keys in requests, from each header
	noted []string // the requests to that other origin
}

func newReflector(t *testing.T) *reflector {
	r := &reflector{}
	r.elsewhere = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		dump, _ := httputil.DumpRequest(request, true)
		r.mu.Lock()
		r.noted = append(r.noted, string(dump))
		r.mu.Unlock()
	}))
	t.Cleanup(r.elsewhere.Close)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.mu.Lock()
		r.keys = append(r.keys, strings.Join(request.Header.Values("X-Api-Key"), "|"))
		r.mu.Unlock()
		way := strings.TrimPrefix(request.URL.Path, "/")
		if reflect, ok := r.ways()[way]; ok {
			reflect(w, request, request.Header.Get("X-Api-Key"))
			return
		}
		_, _ = fmt.Fprintf(w, "landed with %q", request.Header.Get("X-Api-Key"))
	}))
	t.Cleanup(r.Close)
	return r
}

// sent returns the keys of all requests so far.
func (r *reflector) sent() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.keys)
}

type reflection = func(w http.ResponseWriter, r *http.Request, key string)

// text returns a handler that answers with the text that f makes from the key.
func text(f func(key string) string) reflection {
	return func(w http.ResponseWriter, _ *http.Request, key string) { _, _ = w.Write([]byte(f(key))) }
}

// raw writes the bytes of an answer that net/http would not write.
func raw(f func(key string) string) reflection {
	return func(w http.ResponseWriter, _ *http.Request, key string) {
		conn, buffer, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		_, _ = buffer.WriteString(f(key))
		_ = buffer.Flush()
	}
}

// with sets a header.
func with(name string, f func(key string) string) reflection {
	return func(w http.ResponseWriter, _ *http.Request, key string) { w.Header()[name] = []string{f(key)} }
}

// redirect redirects to the address that f makes from the key.
func redirect(status int, f func(key string) string) reflection {
	return func(w http.ResponseWriter, _ *http.Request, key string) {
		w.Header().Set("Location", f(key))
		w.WriteHeader(status)
	}
}

func plain(key string) string { return key }

// ways returns all ways of reflecting a key, by name.
func (r *reflector) ways() map[string]reflection {
	ways := map[string]reflection{
		"dump": func(w http.ResponseWriter, request *http.Request, _ string) {
			dump, _ := httputil.DumpRequest(request, true)
			_, _ = w.Write(dump)
		},
		"json": func(w http.ResponseWriter, request *http.Request, _ string) {
			_ = json.NewEncoder(w).Encode(map[string]any{"headers": request.Header})
		},
		"json in json": text(func(key string) string {
			inner, _ := json.Marshal(map[string]string{"key": key})
			outer, _ := json.Marshal(string(inner))
			return string(outer)
		}),
		"unicode": text(func(key string) (s string) {
			for _, r := range key {
				s += fmt.Sprintf(`\u%04X`, r)
			}
			return s
		}),
		"html":      text(func(key string) string { return "<b>" + html.EscapeString(key) + "</b>" }),
		"query":     text(url.QueryEscape),
		"path":      text(url.PathEscape),
		"hex":       text(func(key string) string { return hex.EncodeToString([]byte(key)) }),
		"HEX":       text(func(key string) string { return fmt.Sprintf("%X", key) }),
		"base64":    text(func(key string) string { return base64.StdEncoding.EncodeToString([]byte(key)) }),
		"base64 +1": text(func(key string) string { return base64.StdEncoding.EncodeToString([]byte("u" + key)) }),
		"base64 +2": text(func(key string) string { return base64.URLEncoding.EncodeToString([]byte("u:" + key + ";")) }),
		"base64 in base64": text(func(key string) string {
			return base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte("u:" + key))))
		}),
		"base64 of UTF-16": text(func(key string) string {
			var b []byte
			for _, unit := range utf16.Encode([]rune(key)) {
				b = append(b, byte(unit), byte(unit>>8))
			}
			return base64.StdEncoding.EncodeToString(b)
		}),
		"hex of base64": text(func(key string) string {
			return hex.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte(key))))
		}),
		"bytes":    text(func(key string) string { return fmt.Sprint([]byte(key)) }),
		"hex dump": text(func(key string) string { return fmt.Sprintf("% x", key) }),
		"UTF-16": text(func(key string) string {
			var b []byte
			for _, unit := range utf16.Encode([]rune(key)) {
				b = append(b, byte(unit>>8), byte(unit))
			}
			return string(b)
		}),
		"lines": text(func(key string) (s string) {
			for len(key) > 10 {
				s, key = s+key[:10]+"\r\n", key[10:]
			}
			return s + key
		}),
		"gzip": func(w http.ResponseWriter, _ *http.Request, key string) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write([]byte(key))
			_ = z.Close()
		},
		"byte by byte": func(w http.ResponseWriter, _ *http.Request, key string) {
			for i := range len(key) {
				_, _ = w.Write([]byte{key[i]})
				w.(http.Flusher).Flush()
			}
		},
		"error": func(w http.ResponseWriter, _ *http.Request, key string) {
			http.Error(w, "the key "+key+" is not valid", http.StatusUnauthorized)
		},
		"early hints": func(w http.ResponseWriter, _ *http.Request, key string) {
			w.Header().Set("Link", "</"+key+">")
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusOK)
		},
		"trailer": func(w http.ResponseWriter, _ *http.Request, key string) {
			_, _ = w.Write([]byte("body"))
			w.Header().Set(http.TrailerPrefix+"X-Key", key)
		},
		"cookie": with("Set-Cookie", func(key string) string { return "key=" + url.QueryEscape(key) }),
		"header": with("X-Key", plain),
		"name of header": func(w http.ResponseWriter, _ *http.Request, key string) {
			w.Header()["X-"+hex.EncodeToString([]byte(key))] = []string{"1"}
		},
		"encoding":        with("Content-Encoding", plain),
		"type":            with("Content-Type", func(key string) string { return "text/" + key }),
		"sum":             with("Etag", func(key string) string { return strconv.Quote(key) }),
		"status line":     raw(func(key string) string { return "HTTP/1.1 401 " + key + "\r\nContent-Length: 2\r\n\r\n{}" }),
		"status":          raw(func(key string) string { return "HTTP/1.1 " + key + "\r\n\r\n" }),
		"protocol":        raw(func(key string) string { return key + " 200 OK\r\n\r\n" }),
		"broken header":   raw(func(key string) string { return "HTTP/1.1 200 OK\r\n" + key + "\r\n\r\n" }),
		"broken length":   raw(func(key string) string { return "HTTP/1.1 200 OK\r\nContent-Length: " + key + "\r\n\r\n" }),
		"broken chunk":    raw(func(key string) string { return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + key + "\r\n" }),
		"broken transfer": raw(func(key string) string { return "HTTP/1.1 200 OK\r\nTransfer-Encoding: " + key + "\r\n\r\n" }),
		"broken gzip":     raw(func(key string) string { return "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + key }),
		"cut off":         raw(func(key string) string { return "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + key }),
		"switch": raw(func(key string) string {
			return "HTTP/1.1 101 " + key + "\r\nUpgrade: " + key + "\r\nConnection: upgrade\r\n\r\n"
		}),
		"host":     redirect(302, func(key string) string { return "http://" + hex.EncodeToString([]byte(key))[:60] + ".invalid/" }),
		"nowhere":  redirect(302, func(key string) string { return "gopher://" + url.PathEscape(key) + "/" }),
		"userinfo": redirect(302, func(key string) string { return "http://" + url.PathEscape(key) + "@127.0.0.1/" }),
		"refresh":  with("Refresh", func(key string) string { return "0; url=/?key=" + url.QueryEscape(key) }),
	}
	for _, status := range []int{301, 302, 303, 307, 308} {
		ways[fmt.Sprint("redirect ", status)] = redirect(status, func(key string) string { return "/landed?key=" + url.QueryEscape(key) })
		ways[fmt.Sprint("elsewhere ", status)] = redirect(status, func(key string) string { return r.elsewhere.URL + "/" + url.PathEscape(key) })
		ways[fmt.Sprint("follow elsewhere ", status)] = redirect(status, func(string) string { return r.elsewhere.URL + "/clean" })
	}
	return ways
}

// echo is a server that repeats what a client sends, without speaking HTTP: its answer begins with the request.
func echo(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				r, err := http.ReadRequest(bufio.NewReader(conn))
				if err == nil {
					_ = r.Write(conn)
				}
			}()
		}
	}()
	return "http://" + l.Addr().String()
}
