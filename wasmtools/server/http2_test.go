package server_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/gotool"
)

// The kinds of frames of RFC 9113 (6), and their flags.
const (
	frameData, frameHeaders, frameReset, frameSettings, framePing, frameGoAway, frameContinuation = 0, 1, 3, 4, 6, 7, 9

	flagEndStream, flagAck, flagEndHeaders = 1, 1, 4
)

// A frame is a frame of HTTP/2.
type frame struct {
	kind, flags byte
	id          uint32
	payload     []byte
}

func (f frame) append(b []byte) []byte {
	b = append(b, byte(len(f.payload)>>16), byte(len(f.payload)>>8), byte(len(f.payload)), f.kind, f.flags)
	return append(binary.BigEndian.AppendUint32(b, f.id), f.payload...)
}

// A framed is an HTTP/2 client that can send arbitrary frames.
type framed struct {
	t      *testing.T
	conn   net.Conn
	head   bytes.Buffer
	encode *hpack.Encoder
	decode *hpack.Decoder
	got    map[uint32]string // statuses that came before the test waited for them
}

// frames opens an HTTP/2 connection. The settings are pairs of a number and a value.
func frames(t *testing.T, r *running, settings ...uint32) *framed {
	t.Helper()
	f := &framed{t: t, conn: r.dial(), decode: hpack.NewDecoder(4096, nil), got: map[uint32]string{}}
	f.encode = hpack.NewEncoder(&f.head)
	var payload []byte
	for i := 0; i < len(settings); i += 2 {
		payload = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(payload, uint16(settings[i])), settings[i+1])
	}
	if _, err := f.conn.Write(frame{kind: frameSettings, payload: payload}.append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
		t.Fatal(err)
	}
	return f
}

// request returns the frames of a request's head. Unless end is true, a body follows.
func (f *framed) request(id uint32, path string, ends bool, fields ...string) (all []byte) {
	f.head.Reset()
	fields = append([]string{":method", "POST", ":scheme", "http", ":authority", "x", ":path", path, "content-type", "application/json"}, fields...)
	for i := 0; i < len(fields); i += 2 {
		_ = f.encode.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}) // into memory
	}
	next := frame{kind: frameHeaders, id: id}
	if ends {
		next.flags = flagEndStream
	}
	for block := f.head.Bytes(); len(block) > 0; next = (frame{kind: frameContinuation, id: id}) {
		next.payload = block[:min(len(block), 16<<10)]
		if block = block[len(next.payload):]; len(block) == 0 {
			next.flags |= flagEndHeaders
		}
		all = next.append(all)
	}
	return all
}

func (f *framed) send(b []byte) {
	f.t.Helper()
	if _, err := f.conn.Write(b); err != nil {
		f.t.Fatal(err)
	}
}

// ask sends a request with a body.
func (f *framed) ask(id uint32, path, body string, fields ...string) {
	f.t.Helper()
	f.send(frame{frameData, flagEndStream, id, []byte(body)}.append(f.request(id, path, false, fields...)))
}

func (f *framed) read() (frame, error) {
	var head [9]byte
	if _, err := io.ReadFull(f.conn, head[:]); err != nil {
		return frame{}, err
	}
	next := frame{head[3], head[4], binary.BigEndian.Uint32(head[5:]), make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))}
	_, err := io.ReadFull(f.conn, next.payload)
	return next, err
}

// status reads until a stream is answered, and returns the status, or how the stream or the connection has ended.
func (f *framed) status(id uint32) string {
	f.t.Helper()
	for f.got[id] == "" {
		next, err := f.read()
		if err != nil {
			f.t.Fatalf("stream %d: %v", id, err)
		}
		switch next.kind {
		case frameHeaders:
			fields, err := f.decode.DecodeFull(next.payload)
			if err != nil {
				f.t.Fatal(err)
			}
			f.got[next.id] = fields[0].Value
		case frameReset:
			f.got[next.id] = fmt.Sprintf("reset %x", next.payload)
		case frameGoAway:
			if binary.BigEndian.Uint32(next.payload[4:]) != 0 {
				return fmt.Sprintf("go away %x", next.payload)
			}
		}
	}
	return f.got[id]
}

// takes waits until clients take that many places, and heads take that many bytes.
func takes(r *running, places, heads int64) {
	r.tb.Helper()
	for deadline := time.Now().Add(patience); ; runtime.Gosched() {
		gotPlaces, gotHeads := r.Taken()
		if gotPlaces == places && gotHeads == heads {
			return
		}
		if time.Now().After(deadline) {
			r.tb.Fatalf("clients take %d places and %d bytes, want %d and %d", gotPlaces, gotHeads, places, heads)
		}
	}
}

// A held is a tool that waits until it is released.
type held struct {
	tool  *wasmtools.Tool
	begun chan struct{}
	end   chan struct{}
}

func newHeld() held {
	h := held{begun: make(chan struct{}, 1000), end: make(chan struct{})}
	h.tool = gotool.New("own/held", "Waits.", func(ctx context.Context, _ struct{}) (string, error) {
		h.begun <- struct{}{}
		select {
		case <-h.end:
		case <-ctx.Done():
		}
		return "done", nil
	})
	return h
}

// http2Client returns a client that speaks HTTP/2, with TLS or without.
func http2Client(t *testing.T, config *tls.Config) *http.Client {
	t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols), TLSClientConfig: config}
	if config == nil {
		transport.Protocols.SetUnencryptedHTTP2(true)
	} else {
		transport.Protocols.SetHTTP2(true)
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// TestHTTP2 serves real clients of HTTP/2 without TLS, together with those of HTTP/1.1.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.Server.Hosts, c.Auth.Tokens = nil, []string{"sesame"}
	r := start(t, c)
	client := http2Client(t, nil)
	for i, tt := range []struct {
		token string
		body  string
		want  int
	}{{"sesame", `{"a":1}`, 200}, {"other", "{}", 401}, {"sesame", strings.Repeat(" ", 50_000) + "{}", 200}, {"sesame", strings.Repeat(" ", 1<<20) + "{}", 413}} {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/shop/echo", strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Authorization", "Bearer "+tt.token)
		a, err := client.Do(q)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		if _, err := io.Copy(io.Discard, a.Body); err != nil {
			t.Errorf("request %d: %v", i, err)
		}
		_ = a.Body.Close()
		if a.StatusCode != tt.want || a.ProtoMajor != 2 {
			t.Errorf("request %d: got %s %s, want HTTP/2 and %d; the log:\n%s", i, a.Proto, a.Status, tt.want, r.log)
		}
	}
	if got := r.status("/shop/echo", "sesame"); got != 200 {
		t.Errorf("HTTP/1.1 meanwhile: got %d", got)
	}
	takes(r, 1, 0)
	r.await(1, 0)
}

// TestRapidReset has a client that begins requests and ends them at once, as fast as it can: other clients are served, and nothing of the requests is
// left.
// Proves: Clients keep nobody out
func TestRapidReset(t *testing.T) {
	t.Parallel()
	h := newHeld()
	close(h.end)
	r := build(t, settings(t), h.tool)
	run(t, r)
	r.log.Wait(t, `"msg":"ready"`)
	ends := make(chan struct{})
	for range 4 {
		go func() {
			defer func() { ends <- struct{}{} }()
			f := frames(t, r)
			defer func() { _ = f.conn.Close() }()
			go func() { _, _ = io.Copy(io.Discard, f.conn) }()
			for i := range uint32(2000) {
				id := 2*i + 1
				reset := frame{frameReset, 0, id, []byte{0, 0, 0, 8}}
				if _, err := f.conn.Write(reset.append(f.request(id, "/own/held", false))); err != nil { // the client was disconnected
					return
				}
			}
		}()
	}
	for range 20 {
		if got := r.status("/shop/echo", ""); got != 200 {
			t.Errorf("another client meanwhile: got %d", got)
		}
	}
	for range 4 {
		<-ends
	}
	takes(r, 0, 0)
}

// TestStreamsTakePlaces makes more requests at once over one connection than there are places for.
// Proves: Clients keep nobody out
func TestStreamsTakePlaces(t *testing.T) {
	t.Parallel()
	h := newHeld()
	r := build(t, settings(t), h.tool)
	r.SetConnections(4, 2)
	run(t, r)
	r.log.Wait(t, `"msg":"ready"`)
	f := frames(t, r)
	for i := range uint32(4) {
		f.ask(2*i+1, "/own/held", "{}")
		<-h.begun
	}
	takes(r, 4, 0)
	for i := range uint32(8) {
		id := 2*i + 101
		f.ask(id, "/own/held", "{}")
		if got := f.status(id); got != "503" {
			t.Errorf("request %d: got %s", i+5, got)
		}
	}
	close(h.end)
	for i := range uint32(4) {
		if got := f.status(2*i + 1); got != "200" {
			t.Errorf("request %d: got %s", i+1, got)
		}
	}
	takes(r, 1, 0)
	f.ask(201, "/own/held", "{}")
	if got := f.status(201); got != "200" {
		t.Errorf("afterwards: got %s", got)
	}
}

// TestHTTP2Heads sends requests with large heads, and with many lines.
// Proves: Clients keep nobody out
func TestHTTP2Heads(t *testing.T) {
	t.Parallel()
	h := newHeld()
	r := build(t, settings(t), h.tool)
	r.SetHeads(100 << 10)
	run(t, r)
	r.log.Wait(t, `"msg":"ready"`)
	f := frames(t, r)
	large := strings.Repeat("x", 20<<10)
	for i := range uint32(3) { // of some 33 KiB each
		f.ask(2*i+1, "/own/held", "{}", "large", large)
		<-h.begun
	}
	f.ask(101, "/own/held", "{}", "large", large)
	if got := f.status(101); got != "503" {
		t.Errorf("a fourth large head: got %s", got)
	}
	f.ask(103, "/shop/echo", "{}")
	if got := f.status(103); got != "200" {
		t.Errorf("a small one beside them: got %s", got)
	}
	var many []string
	for range 300 {
		many = append(many, "a", "b")
	}
	f.ask(105, "/shop/echo", "{}", many...)
	if got := f.status(105); got != "431" {
		t.Errorf("300 lines: got %s", got)
	}
	close(h.end)
	takes(r, 1, 0)
	f.ask(107, "/shop/echo", "{}", "large", strings.Repeat("x", 60<<10))
	if got := f.status(107); !strings.HasPrefix(got, "go away") {
		t.Errorf("a head of 60 KiB: got %s", got)
	}
}

// TestHeadWithoutEnd has a client whose head never ends.
// Proves: Clients keep nobody out
func TestHeadWithoutEnd(t *testing.T) {
	t.Parallel()
	r := start(t, settings(t))
	f := frames(t, r)
	go func() {
		next := frame{kind: frameHeaders, id: 1, payload: bytes.Repeat([]byte{0x82}, 16<<10)} // :method GET, in a byte
		for {
			if _, err := f.conn.Write(next.append(nil)); err != nil {
				return
			}
			next.kind = frameContinuation
		}
	}()
	if _, err := io.Copy(io.Discard, f.conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the server goes on reading forever")
	}
	takes(r, 0, 0)
}

// TestPingFlood has a client that sends pings and does not read the answers: the server stops reading from it. Once it reads, it gets its answers, or
// the server has ended the connection.
// Proves: Clients keep nobody out
func TestPingFlood(t *testing.T) {
	t.Parallel()
	r := start(t, settings(t))
	f := frames(t, r)
	_ = f.conn.(*net.TCPConn).SetReadBuffer(64 << 10)
	pings := bytes.Repeat(frame{kind: framePing, payload: make([]byte, 8)}.append(nil), 1000)
	sent, most := 0, 64<<20
	for sent < most {
		_ = f.conn.SetWriteDeadline(time.Now().Add(time.Second))
		n, err := f.conn.Write(pings)
		if sent += n; err != nil {
			break
		}
	}
	if sent >= most {
		t.Fatalf("the server has read %d bytes of pings, although it could answer none", sent)
	}
	const enough = 20_000 // more than net/http buffers
	for got := 0; got < min(enough, sent/17); {
		next, err := f.read()
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
			return // net/http has ended the connection, if 10,000 answers were waiting before the server stopped reading
		}
		if err != nil {
			t.Fatalf("after %d of %d answers: %v", got, sent/17, err)
		}
		if next.kind == framePing && next.flags == flagAck {
			got++
		}
	}
}

// TestUnreadStreams has a client that accepts no bytes of its answers, by means of HTTP/2's flow control: it is disconnected to make room when all
// places are taken.
// Proves: Clients keep nobody out
func TestUnreadStreams(t *testing.T) {
	t.Parallel()
	r := build(t, settings(t))
	r.SetConnections(2, 1)
	run(t, r)
	r.log.Wait(t, `"msg":"ready"`)
	f := frames(t, r, 4, 0) // SETTINGS_INITIAL_WINDOW_SIZE
	f.ask(1, "/shop/echo", "{}")
	f.ask(3, "/shop/echo", "{}")
	for deadline := time.Now().Add(patience); r.Writing() < 2; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d answers wait for the client, want 2", r.Writing())
		}
	}
	for range 3 {
		if got := r.status("/shop/echo", ""); got != 200 {
			t.Errorf("while answers are not read: got %d", got)
		}
	}
	takes(r, 0, 0)
}

// TestHTTP2Hurry has a body that arrives slowly while others need its memory: only that request ends.
func TestHTTP2Hurry(t *testing.T) {
	t.Parallel()
	r := build(t, settings(t))
	r.SetConnections(10, 1)
	run(t, r)
	r.log.Wait(t, `"msg":"ready"`)
	f := frames(t, r)
	for _, id := range []uint32{1, 3} {
		f.send(f.request(id, "/shop/echo", false))
		r.await(0, int(id+1)/2)
	}
	if !r.Hurry() {
		t.Error("no slow body was found")
	}
	if got := f.status(1); got != "408" {
		t.Errorf("the slow request: got %s", got)
	}
	f.send(frame{frameData, flagEndStream, 3, []byte("{}")}.append(nil))
	if got := f.status(3); got != "200" {
		t.Errorf("the other one: got %s", got)
	}
	r.await(1, 0)
}

// TestHTTP2Drain stops a server, and hands one over, while an HTTP/2 request is answered and another connection is idle.
func TestHTTP2Drain(t *testing.T) {
	t.Parallel()
	for _, handing := range []bool{false, true} {
		t.Run(fmt.Sprintf("handing over %t", handing), func(t *testing.T) {
			t.Parallel()
			h := newHeld()
			r := build(t, settings(t), h.tool)
			run(t, r)
			r.log.Wait(t, `"msg":"ready"`)
			idle, busy := frames(t, r), frames(t, r)
			idle.ask(1, "/shop/echo", "{}")
			if got := idle.status(1); got != "200" {
				t.Fatalf("got %s", got)
			}
			busy.ask(1, "/own/held", "{}")
			<-h.begun
			if handing {
				files, err := r.HandOver()
				if err != nil {
					t.Fatal(err)
				}
				for _, file := range files {
					defer file.Close()
				}
			}
			r.stop()
			for _, f := range []*framed{idle, busy} {
				for {
					next, err := f.read()
					if err != nil {
						t.Fatal(err)
					}
					if next.kind == frameGoAway {
						if binary.BigEndian.Uint32(next.payload[4:]) != 0 {
							t.Errorf("got %x", next.payload)
						}
						break
					}
				}
			}
			close(h.end)
			if got := busy.status(1); got != "200" {
				t.Errorf("the request that ran: got %s", got)
			}
			if err := r.result(); err != nil {
				t.Error(err)
			}
		})
	}
}
