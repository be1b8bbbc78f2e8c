package registry_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog/registry"
	"github.com/toolsrv/toolsrv/internal/oci"
	"github.com/toolsrv/toolsrv/internal/signature"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/ocitest"
)

// mirrored opens a source with mirrors, and returns it with what it logs.
func mirrored(t *testing.T, origin *ocitest.Server, which, folder string, change func(*registry.Options), mirrors ...*ocitest.Server) (*registry.Source, func() string) {
	t.Helper()
	var mu sync.Mutex
	var log bytes.Buffer
	s := follow(t, origin.Host, which, folder, func(o *registry.Options) {
		for _, m := range mirrors {
			o.Mirrors = append(o.Mirrors, oci.Reference{Host: m.Host, Repository: "acme/csv"})
		}
		o.Patience = 50 * time.Millisecond
		o.Logger = slog.New(slog.NewTextHandler(locked{&mu, &log}, nil))
		if change != nil {
			change(o)
		}
	})
	return s, func() string {
		mu.Lock()
		defer mu.Unlock()
		return log.String()
	}
}

type locked struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// counting counts the requests for blobs, and for manifests by tag.
func counting(s *ocitest.Server) (blobs, tags *atomic.Int64) {
	blobs, tags = &atomic.Int64{}, &atomic.Int64{}
	s.Before(func(_ http.ResponseWriter, q *http.Request) bool {
		switch {
		case strings.Contains(q.URL.Path, "/blobs/"):
			blobs.Add(1)
		case strings.Contains(q.URL.Path, "/manifests/") && !strings.Contains(q.URL.Path, "/manifests/sha256"), strings.Contains(q.URL.Path, "/tags/"):
			tags.Add(1)
		}
		return false
	})
	return blobs, tags
}

// TestMirror pulls modules from a mirror, but asks the origin what a tag refers to, since the mirror's tag is outdated.
func TestMirror(t *testing.T) {
	t.Parallel()
	origin, mirror := ocitest.Serve(t), ocitest.Serve(t)
	push(t, origin, "1.2", "one")
	push(t, mirror, "1.2", "one")
	fromOrigin, _ := counting(origin)
	_, asked := counting(mirror)
	s, log := mirrored(t, origin, "1.2", t.TempDir(), nil, mirror)
	await(t, s, "one", "")
	if n := fromOrigin.Load(); n != 0 {
		t.Errorf("the origin was asked for %d blobs", n)
	}
	push(t, origin, "1.2", "two") // the mirror does not have it
	await(t, s, "two", "")
	if n := asked.Load(); n != 0 {
		t.Errorf("the mirror was asked %d times what a tag is", n)
	}
	if got := log(); !strings.Contains(got, "a mirror doesn't have what was asked for") || !strings.Contains(got, mirror.Host) || strings.Count(got, "level=WARN") != 1 {
		t.Errorf("got the log %s", got)
	}
}

// TestHostileMirrors has mirrors that hang, lie or are unreachable: the next one is asked. None of them holds up the source, or causes anything else
// to be served.
// Proves: No tool takes another's place
func TestHostileMirrors(t *testing.T) {
	t.Parallel()
	blob := func(f func(w http.ResponseWriter, q *http.Request)) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, q *http.Request) bool {
			if strings.Contains(q.URL.Path, "/blobs/") {
				f(w, q)
				return true
			}
			return false
		}
	}
	for name, c := range map[string]struct {
		before func(http.ResponseWriter, *http.Request) bool
		says   string
	}{
		"hangs": {func(_ http.ResponseWriter, q *http.Request) bool { <-q.Context().Done(); return true }, "timeout awaiting response headers"},
		"begins, and hangs": {blob(func(w http.ResponseWriter, q *http.Request) {
			_, _ = io.WriteString(w, "o")
			w.(http.Flusher).Flush()
			<-q.Context().Done()
		}), "too slow"},
		"lies": {blob(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "bad") }), "doesn't match its digest"},
		"sends more": {blob(func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, "onetwothree")
		}), "has more than the 3 bytes"},
		"cuts":        {blob(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), "EOF"},
		"has nothing": {func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusNotFound); return true }, "the registry has nothing with this name"},
		"is busy": {func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		}, "asked again in 1h0m0s"},
		"leads astray": {func(w http.ResponseWriter, q *http.Request) bool {
			http.Redirect(w, q, "http://10.0.0.1/", http.StatusFound)
			return true
		}, "a registry on another kind of network must not lead there"},
		"asks for credentials": {ocitest.Basic("ann", "secret"), "there are none for it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			origin, bad, good := ocitest.Serve(t), ocitest.Serve(t), ocitest.Serve(t)
			for _, s := range []*ocitest.Server{origin, bad, good} {
				push(t, s, "1.2", "one")
			}
			bad.Before(c.before)
			s, log := mirrored(t, origin, "1.2", t.TempDir(), nil, bad)
			await(t, s, "one", "")
			if got := log(); !strings.Contains(got, c.says) || !strings.Contains(got, "mirror="+bad.Host) {
				t.Errorf("got the log %s, want %q", got, c.says)
			}
			blobs, _ := counting(origin)
			s, _ = mirrored(t, origin, "1.2", t.TempDir(), nil, bad, good)
			await(t, s, "one", "")
			if n := blobs.Load(); n != 0 {
				t.Errorf("%d blobs were requested from the origin, want none, since the next mirror has them", n)
			}
		})
	}
}

// TestMirrorsWithoutOrigin serves an artifact by its digest while the origin is unreachable. If no mirror has it, the error says what is wrong with
// each of them.
func TestMirrorsWithoutOrigin(t *testing.T) {
	t.Parallel()
	origin, mirror := ocitest.Serve(t), ocitest.Serve(t)
	a := push(t, mirror, "1.2", "one")
	away := func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusForbidden)
		return true
	}
	origin.Before(away)
	s, _ := mirrored(t, origin, a.Manifest, t.TempDir(), nil, mirror)
	await(t, s, "one", "")
	s, _ = mirrored(t, origin, "1.2", t.TempDir(), func(o *registry.Options) { o.Locked = a.Manifest }, mirror)
	await(t, s, "one", "")
	s, _ = mirrored(t, origin, "1.2", t.TempDir(), nil, mirror) // it is not trusted to resolve a tag
	await(t, s, "", "does not allow it")
	mirror.Before(away)
	s, _ = mirrored(t, origin, a.Manifest, t.TempDir(), nil, mirror)
	await(t, s, "", "the mirrors asked before: "+mirror.Host)
}

// TestMirrorsOfSigned pulls from a mirror only what the mirror has together with its signature.
func TestMirrorsOfSigned(t *testing.T) {
	t.Parallel()
	private, public := newPair(t)
	trust, err := signature.Open([]signature.Signer{{Key: public}})
	if err != nil {
		t.Fatal(err)
	}
	signed := func(s *ocitest.Server) {
		r, err := oci.Open(s.Host, noKeys(t))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if _, err := r.Sign(t.Context(), oci.Reference{Host: s.Host, Repository: "acme/csv", Tag: "1.2"}, private); err != nil {
			t.Fatal(err)
		}
	}
	origin, bare, whole := ocitest.Serve(t), ocitest.Serve(t), ocitest.Serve(t)
	for _, s := range []*ocitest.Server{origin, bare, whole} {
		push(t, s, "1.2", "one")
	}
	signed(origin)
	signed(whole)
	blobs, _ := counting(origin)
	s, log := mirrored(t, origin, "1.2", t.TempDir(), func(o *registry.Options) { o.Registry.Trust = trust }, bare, whole)
	await(t, s, "one", "")
	if got := log(); !strings.Contains(got, "it is not signed") || blobs.Load() != 0 {
		t.Errorf("got the log %s, and %d blobs of the origin", got, blobs.Load())
	}
}

// TestMirrorUncached has no cache, and a mirror that begins to send wrong bytes. The first read fails, and the next one asks the origin.
func TestMirrorUncached(t *testing.T) {
	t.Parallel()
	origin, mirror := ocitest.Serve(t), ocitest.Serve(t)
	push(t, origin, "1.2", "one")
	push(t, mirror, "1.2", "one")
	s, _ := mirrored(t, origin, "1.2", "", nil, mirror)
	l, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mirror.Before(func(w http.ResponseWriter, q *http.Request) bool {
		if strings.Contains(q.URL.Path, "/blobs/") {
			_, _ = io.WriteString(w, "bad")
			return true
		}
		return false
	})
	read := func() (string, error) {
		f, err := s.Open(t.Context(), l.Entries[0].ID, l.Entries[0].Version)
		if err != nil {
			return "", err
		}
		defer f.Close()
		b, err := io.ReadAll(f)
		return string(b), err
	}
	if got, err := read(); err == nil || !strings.Contains(err.Error(), "doesn't match its digest") {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := read(); got != "one" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// A network gives names to servers on loopback.
type network map[string]string

func (network) Lookup(context.Context, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil
}

func (n network) Dial(ctx context.Context, address string) (net.Conn, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, "tcp", n[port])
}

func (network) Interfaces() ([]netip.Prefix, error) { return nil, nil }

func (network) Proxy(*http.Request) (*url.URL, error) { return nil, nil }

// TestMirrorCredentials checks that a mirror does not get the origin's credentials, and that it is asked only over TLS, even if the origin may be
// asked without.
func TestMirrorCredentials(t *testing.T) {
	t.Parallel()
	origin, mirror := ocitest.Serve(t), ocitest.Serve(t)
	push(t, origin, "1.2", "one")
	origin.Before(ocitest.Basic("ann", "secret"))
	keys := testkit.Put(t, t.TempDir(), "config.json", fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, origin.Host, base64.StdEncoding.EncodeToString([]byte("ann:secret"))))
	var told atomic.Int64
	mirror.Before(func(w http.ResponseWriter, q *http.Request) bool {
		if q.Header.Get("Authorization") != "" {
			told.Add(1)
		}
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service=%q,scope="repository:acme/csv:pull"`, mirror.Host, origin.Host))
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	s, _ := mirrored(t, origin, "1.2", t.TempDir(), func(o *registry.Options) { o.Registry.Credentials = keys }, mirror)
	await(t, s, "one", "")
	if mirror.Requests.Load() == 0 || told.Load() > 0 {
		t.Errorf("the mirror got %d requests, and %d times the credentials", mirror.Requests.Load(), told.Load())
	}

	origin.Before(nil)
	before := mirror.Requests.Load()
	_, port, _ := net.SplitHostPort(origin.Host)
	_, other, _ := net.SplitHostPort(mirror.Host)
	named := follow(t, "origin.example:"+port, "1.2", t.TempDir(), func(o *registry.Options) {
		o.Mirrors = []oci.Reference{{Host: "mirror.example:" + other, Repository: "acme/csv"}}
		o.Registry.PlainHTTP, o.Registry.Network = true, network{port: origin.Host, other: mirror.Host}
	})
	await(t, named, "one", "")
	if n := mirror.Requests.Load() - before; n > 0 {
		t.Errorf("the mirror was asked %d times without TLS", n)
	}
}
