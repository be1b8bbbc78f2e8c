package http

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/jsontree"
	"github.com/toolsrv/toolsrv/internal/personal"
	"github.com/toolsrv/toolsrv/internal/reach"
	"github.com/toolsrv/toolsrv/internal/redact"
	"github.com/toolsrv/toolsrv/internal/secret"
	"github.com/toolsrv/toolsrv/internal/trace"
	"github.com/toolsrv/toolsrv/runtime/hostabi"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability/answer"
)

// A caller has the methods of [hostabi.Call] that sending needs.
type caller interface {
	Context() context.Context
	Wait(f func(ctx context.Context))
	Hold(n int64)
	Charge(nanos int)
	Used(u hostabi.Use)
	Tally(n int) int
}

// maxShown is the length of the longest path that a failure shows, in bytes.
const maxShown = 80

// connectionBytes is the memory that is accounted for a running request: its connection, and the head of its answer.
const connectionBytes = 128 << 10

// An exchange is one request of a guest, with all its redirects.
type exchange struct {
	g       *Permission
	c       caller
	ctx     context.Context // context of the whole request, within the call's; nil until the first wait
	cancel  context.CancelFunc
	timeout time.Duration
	held    int64                // how many bytes the account counts
	redact  redact.Chain         // empty if no secret is put into requests to the host
	who     *wasmtools.Principal // the caller; nil if not known

	r      *request
	rule   *rule // the rule for the next request
	target reach.Target
	url    string // URL of the target; set once hop has begun
	method string
	body   []byte
	header http.Header
	use    hostabi.Use

	lines *lines      // the connections that the call keeps
	line  *line       // the connection in use
	stop  func() bool // keeps line from being cut when ctx ends
	whole bool        // the answer was read to its end

	partial bool // a part of the answer was asked for
}

// send sends a request, follows its redirects, and returns the answer as the guest reads it. Nothing of the exchange remains when send returns, or
// panics because the call has to end.
func (g *Permission) send(c caller, kept *lines, r *request, who *wasmtools.Principal) ([]byte, *answer.Failure) {
	x := &exchange{g: g, c: c, lines: kept, r: r, who: who, target: r.target, method: r.method, body: r.body, header: r.headers}
	defer func() {
		if x.cancel != nil {
			x.cancel()
		}
	}()
	b, f := x.hops()
	c.Hold(-x.held)
	return b, f
}

// count counts a request that is about to be sent.
func (x *exchange) count() *answer.Failure {
	if x.c.Tally(1) > x.rule.Requests {
		return answer.Failf(answer.Limit, "The client's call has made %d requests, which is the limit of the tool's grant (http_requests).", x.rule.Requests)
	}
	return nil
}

// hops sends the request, and follows its redirects.
func (x *exchange) hops() ([]byte, *answer.Failure) {
	for number := 0; ; number++ {
		b, next, f := x.hop(number)
		if f != nil || next == nil {
			return b, f
		}
		x.follow(next)
	}
}

// origin returns the origin of the URL.
func (x *exchange) origin() string {
	rest := len(x.target.Path)
	if x.target.HasQuery {
		rest += len("?") + len(x.target.Query)
	}
	return x.url[:len(x.url)-rest]
}

// hold makes the account count n bytes until the request is over.
func (x *exchange) hold(n int) {
	x.c.Hold(int64(n))
	x.held += int64(n)
}

// A hop is the target of a redirect.
type hop struct {
	status int
	target reach.Target
}

// hop sends one request, and counts it even if it is refused. It returns the answer, or the target of a redirect.
func (x *exchange) hop(number int) (b []byte, next *hop, f *answer.Failure) {
	start := time.Now()
	x.url = x.target.String()
	x.use = hostabi.Use{Capability: "http", Target: x.method + " " + x.origin() + x.target.Path}
	defer func() {
		if x.use.Took = time.Since(start); f != nil {
			if x.use.Outcome = f.Code; x.rule == nil { // also for a refused redirect, for which f has the code redirect
				x.use.Outcome = answer.NotGranted
			}
			x.know()
			f.Message = x.redact.String(f.Message)
		}
		x.use.Target = x.redact.String(x.use.Target)
		x.c.Used(x.use)
	}()
	if f = x.allowed(number > 0); f != nil {
		return nil, nil, f
	}
	if f = x.count(); f != nil {
		return nil, nil, f
	}
	if number == 0 {
		x.begin()
	}
	x.use.Sent = int64(len(x.body))
	request, f := x.prepare()
	if f != nil {
		return nil, nil, f
	}
	defer func() { x.finish(false) }()
	response, err := x.roundTrip(request)
	if err != nil {
		return nil, nil, x.failure(err)
	}
	x.use.Status = response.StatusCode
	if f = checkHeaders(response.Header); f != nil {
		return nil, nil, f
	}
	x.whole = !hasBody(response) || response.ContentLength == 0
	x.know() // a secret may have a new value or a new grant by now, and a hostile service can wait for that
	if next, f = x.redirect(number, response); f == nil && next == nil {
		b, f = x.read(response)
	}
	if f == nil {
		x.finish(x.whole && !response.Close)
	}
	return b, next, f
}

// begin prepares the exchange. The rule of the first request bounds all requests.
func (x *exchange) begin() {
	if x.timeout = x.rule.Timeout; x.r.timeout > 0 {
		x.timeout = min(x.timeout, x.r.timeout)
	}
	x.hold(connectionBytes)
}

// wait calls f, which waits for the network. The time of the request begins with its first wait.
func (x *exchange) wait(f func()) {
	x.c.Wait(func(ctx context.Context) {
		if x.ctx == nil {
			x.ctx = ctx
			if ends, ok := ctx.Deadline(); !ok || time.Until(ends) > x.timeout { // a new context takes a microsecond
				x.ctx, x.cancel = context.WithTimeout(ctx, x.timeout)
			}
		}
		f()
	})
}

// allowed finds the rule for the next request, and refuses a request that is not declared or not granted.
func (x *exchange) allowed(redirected bool) *answer.Failure {
	if x.rule = x.g.rule(x.target); x.rule != nil {
		if n := int64(len(x.body)); n > x.rule.RequestBytes {
			return bodyTooLarge(n, x.rule.RequestBytes)
		}
		return nil
	}
	code, subject := answer.NotGranted, "The tool asked for"
	if redirected {
		code, subject = codeRedirect, "The server redirects to"
	}
	asked := x.target.Origin.String() + x.target.Path
	if len(x.target.Path) > maxShown { // a truncated secret would not be found in the tool's error message
		asked = x.target.Origin.String() + "/..."
	}
	if all := x.g.needed; !reach.Allowed(all, all, x.target) {
		return answer.Failf(code, "%s %s, but the tool declares only that it needs %s: add it to http in the needs of its manifest.", subject, asked, list(all))
	}
	return answer.Failf(code, "%s %s, but the tool is granted only %s. To grant it, add it to http in the tool's [[grant]]: http = [%q].", subject, asked, list(x.g.granted()), x.target.Origin)
}

// prepare makes the request for net/http, only from parts that were checked.
func (x *exchange) prepare() (*http.Request, *answer.Failure) {
	headers := maps.Clone(x.header) // a shallow copy, since values are replaced, never changed
	injected, f := x.rule.inject(x.target, headers, filling{x.g.options.Secrets, x.who, x.missing})
	others := x.know() // after inject, so that the injected secrets are known
	if f != nil {
		return nil, f
	}
	injected = injected || others
	x.partial = asksForPart(headers)
	if injected && x.partial {
		return nil, partOf()
	}
	if injected && !onlyUTF8(headers) {
		return nil, answer.Failf(answer.Invalid, "Accept only the charset utf-8: the host puts a secret into requests to this server, and can't find it in another charset.")
	}
	if len(headers["User-Agent"]) == 0 {
		headers["User-Agent"] = []string{"toolsrv"}
	}
	if x.rule.Traceparent {
		traced(x.c.Context(), headers)
	}
	encoding := "gzip"
	if x.partial || injected { // the size of a compressed answer would tell how much of a secret was guessed
		encoding = "identity"
	}
	headers["Accept-Encoding"] = []string{encoding}
	path, err := url.PathUnescape(x.target.Path)
	if err != nil {
		return nil, answer.Failf(answer.Invalid, "The path of the URL is not valid.")
	}
	u := &url.URL{Scheme: x.target.Scheme, Host: x.origin()[len(x.target.Scheme)+len("://"):], Path: path, RawPath: x.target.Path,
		RawQuery: x.target.Query, ForceQuery: x.target.HasQuery}
	if u.String() != x.url {
		return nil, answer.Failf(answer.Invalid, "The URL can't be sent as it is written.")
	}
	request := &http.Request{Method: x.method, URL: u, Host: u.Host, Header: headers, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	if len(x.body) > 0 {
		request.ContentLength = int64(len(x.body))
		request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(x.body)), nil }
		request.Body, _ = request.GetBody()
	}
	return request, nil
}

// traced sets the trace headers of a request, in place of the guest's, if the trace is recorded.
func traced(ctx context.Context, headers http.Header) {
	s := trace.SpanOf(ctx)
	if s == nil {
		return
	}
	for name := range headers {
		if folded := fold(name); folded == "traceparent" || folded == "tracestate" {
			delete(headers, name)
		}
	}
	parent, state := s.Next()
	headers["Traceparent"] = []string{parent}
	if state != "" {
		headers["Tracestate"] = []string{state}
	}
}

// know makes sure that answers of a host are searched for all secrets that this or any other grant puts into requests to it, as far as is known now.
// Of the secrets that callers have of their own, only this caller's are included: what others have chosen is not removed. know reports whether other
// grants inject any.
func (x *exchange) know() (others bool) {
	names := x.g.options.Injected.names(x.target.Host)
	others = len(names) > 0
	if names = append(names, x.g.secrets...); len(names) > 0 && x.g.options.Secrets != nil {
		id, _ := personal.Of(x.who) // a caller without an identity has no secrets
		x.redact = x.g.options.Secrets.RedactorsOf(id, secret.NamesOf(names...))
	}
	return others
}

// missing logs which caller lacks a secret of its own. The number of requests in a client's call is bounded, and so is the number of these lines.
func (x *exchange) missing(name string) {
	if l := x.g.options.Logger; l != nil {
		id, _ := personal.Of(x.who) // a caller without an identity is refused earlier
		l.Info("a caller has not set its own secret", "principal", x.who.String(), "origin", x.who.Origin(), "caller", string(id), "secret", name, "for", x.target.Origin.String())
	}
}

func partOf() *answer.Failure {
	return answer.Failf(answer.Invalid, "Don't ask for part of an answer (Range): the host puts a secret into requests to this server, and can't find part of it.")
}

// redirect returns the target of a redirect, or nil if the answer is for the guest.
func (x *exchange) redirect(number int, response *http.Response) (*hop, *answer.Failure) {
	if x.r.manual || x.rule.Redirects == 0 || !slices.Contains([]int{301, 302, 303, 307, 308}, response.StatusCode) || response.Header.Get("Location") == "" {
		return nil, nil
	}
	if number >= x.rule.Redirects {
		return nil, answer.Failf(codeRedirect, "The server redirects for the %dth time; the limit of the tool's grant is %d (redirects).", number+1, x.rule.Redirects)
	}
	locations := response.Header.Values("Location")
	if len(locations) > 1 {
		return nil, answer.Failf(codeRedirect, "The server redirects to %d URLs at once.", len(locations))
	}
	if x.redact.String(locations[0]) != locations[0] {
		return nil, answer.Failf(codeRedirect, "The server redirects to a URL that contains one of the host's secrets, so the redirect is not followed.")
	}
	target, err := resolve(x.target, locations[0])
	if err != nil {
		return nil, answer.Failf(codeRedirect, "The server redirects to a URL that can't be requested: %s.", err)
	}
	if x.target.Scheme == "https" && target.Scheme != "https" {
		return nil, answer.Failf(codeRedirect, "The server redirects from https to %s, so the redirect is not followed.", target.Scheme)
	}
	return &hop{response.StatusCode, target}, nil
}

// follow prepares the request for a redirect's target, as fetch does: with 303 any method except GET and HEAD becomes GET, and with 301 and 302 POST
// does.
func (x *exchange) follow(next *hop) {
	if next.status == 303 && x.method != http.MethodHead || x.method == http.MethodPost && next.status < 303 {
		if x.method != http.MethodGet {
			x.header = x.header.Clone()
			for _, name := range []string{"Content-Type", "Content-Language", "Content-Encoding", "Content-Location"} {
				x.header.Del(name)
			}
		}
		x.method, x.body = http.MethodGet, nil
	}
	if next.target.Origin != x.target.Origin {
		x.header = elsewhere(x.header)
	}
	x.target = next.target
}

// encode returns the answer in the guest's form. It takes ownership of body.
func (x *exchange) encode(status int, headers [][2]string, body []byte) []byte {
	head := append(make([]byte, 4, 512), `{"status":`...)
	head = strconv.AppendInt(head, int64(status), 10)
	head = appendText(append(head, `,"url":`...), x.redact.String(x.url))
	head = append(head, `,"headers":[`...)
	for i, h := range headers {
		if i > 0 {
			head = append(head, ',')
		}
		head = appendText(append(head, '['), h[0])
		head = append(appendText(append(head, ','), h[1]), ']')
	}
	head = append(head, "]}"...)
	binary.LittleEndian.PutUint32(head, uint32(len(head)-4))
	x.hold(len(head) + len(body))
	return append(append(make([]byte, 0, len(head)+len(body)), head...), body...)
}

// appendText appends text from a server as a JSON string.
func appendText(dst []byte, s string) []byte {
	return jsontree.AppendQuoted(dst, strings.ToValidUTF8(s, "\uFFFD"))
}
