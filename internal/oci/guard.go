package oci

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/nothttp"
	"github.com/toolsrv/toolsrv/internal/trickle"
)

const (
	connectTimeout = 10 * time.Second
	maxRedirects   = 5
	maxTries       = 3
	maxWait        = 5 * time.Second // the longest wait between two tries; if the registry wants a longer one, the caller gets an error
	maxRetryAfter  = time.Hour
)

// ErrSlow is the error for a registry's answer that arrives too slowly or not at all.
var ErrSlow = errors.New("the registry is too slow")

// A BusyError means that a registry asks to be left alone for a time.
type BusyError struct {
	Status int
	After  time.Duration
}

// Error says how long the registry wants to be left alone.
func (e *BusyError) Error() string {
	return fmt.Sprintf("the registry answered %d, and wants to be asked again in %v", e.Status, e.After.Round(time.Second))
}

// guard sends requests. It never lets a request fall back to HTTP, retries harmless requests, and ends answers that stall.
type guard struct {
	base  http.RoundTripper
	plain bool   // the registry itself is asked over HTTP
	own   string // the registry's host, with its port unless that is the usual one
	stall time.Duration
}

// RoundTrip sends a request. Requests after redirects and for tokens also go through it.
func (g *guard) RoundTrip(q *http.Request) (*http.Response, error) {
	if q.URL.Scheme != "https" && (q.URL.Scheme != "http" || !g.plain) {
		return nil, fmt.Errorf("the registry leads to %s without TLS, which is not followed", q.URL.Host)
	}
	if q.URL.Scheme == "http" && !strings.EqualFold(strings.TrimSuffix(q.URL.Host, ":80"), strings.TrimSuffix(g.own, ":80")) && hasSecret(q) {
		return nil, &forbiddenError{fmt.Errorf("the registry wants credentials sent to %s without TLS, which is refused: its tokens must come from %s, or over TLS", q.URL.Host, g.own)}
	}
	harmless := (q.Method == http.MethodGet || q.Method == http.MethodHead) && (q.Body == nil || q.Body == http.NoBody)
	for try := 1; ; try++ {
		answer, err := g.once(q)
		if err == nil && !passes(answer.StatusCode) {
			return answer, nil
		}
		wait := time.Duration(1<<try) * 100 * time.Millisecond
		wait = wait/2 + rand.N(wait)
		if err == nil {
			after, said := retryAfter(answer.Header.Get("Retry-After"), time.Now())
			if said {
				wait = after
			}
			if wait > maxWait || said && (try == maxTries || !harmless) {
				answer.Body.Close()
				return nil, &BusyError{answer.StatusCode, wait}
			}
		}
		if try == maxTries || !harmless || refused(err) {
			return answer, err
		}
		if err == nil {
			answer.Body.Close()
		}
		select {
		case <-q.Context().Done():
			return nil, context.Cause(q.Context())
		case <-time.After(wait):
		}
	}
}

// hasSecret reports whether a request has credentials: in a header, or in the form of a token request.
func hasSecret(q *http.Request) bool {
	return q.Header.Get("Authorization") != "" || q.Header.Get("Content-Type") == "application/x-www-form-urlencoded"
}

// passes reports whether another try may soon get a different answer.
func passes(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout
}

// refused reports whether another try would be pointless.
func refused(err error) bool {
	var forbidden *forbiddenError
	return errors.As(err, &forbidden) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// retryAfter reads the header Retry-After.
func retryAfter(header string, now time.Time) (after time.Duration, ok bool) {
	if header == "" {
		return 0, false
	}
	if seconds, err := strconv.ParseUint(header, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter), true
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(0, min(at.Sub(now), maxRetryAfter)), true
	}
	return 0, false
}

// once sends a request once.
func (g *guard) once(q *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(q.Context())
	answer, err := g.base.RoundTrip(q.WithContext(ctx))
	if err != nil {
		cancel(nil)
		return nil, nothttp.Error(err)
	}
	b := &body{Body: trickle.New(ctx, cancel, answer.Body, g.stall)}
	if isList(q.URL.Path) {
		b.most = maxPage
	}
	answer.Body = b
	answer.Request = q
	return answer, nil
}

// A body is the body of an answer.
type body struct {
	*trickle.Body
	most int64 // how many bytes it may have; 0 means that the reader checks the size
	read int64
}

// Read reads the body as it arrives.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.Body.Read(p)
	if errors.Is(err, trickle.ErrStalled) || errors.Is(err, trickle.ErrSlow) {
		err = fmt.Errorf("%w: %w", ErrSlow, err)
	}
	if b.read += int64(n); b.most > 0 && b.read > b.most {
		return n, errLongPage
	}
	return n, err
}

// errLongPage is the error for a page of a list that is too long. Otherwise the library below would report a truncated page.
var errLongPage = fmt.Errorf("a page of the registry's list has more than %d MiB", maxPage>>20)

// isList reports whether the answer at a path of a registry is a page of a list.
func isList(path string) bool {
	return strings.HasSuffix(path, "/tags/list") || path == "/v2/_catalog" || strings.Contains(path, "/referrers/")
}

// checkRedirect bounds redirects. The library below removes credentials from redirects that leave the registry.
func checkRedirect(q *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return &forbiddenError{fmt.Errorf("the registry redirects more than %d times", maxRedirects)}
	}
	if via[len(via)-1].URL.Scheme == "https" && q.URL.Scheme != "https" {
		return &forbiddenError{fmt.Errorf("the registry redirects to %s without TLS, which is not followed", q.URL.Host)}
	}
	return nil
}

// A forbiddenError means that the client must not connect somewhere.
type forbiddenError struct{ error }

func (e *forbiddenError) Unwrap() error { return e.error }
