package nats_test

import (
	"bufio"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// A gate is a proxy between a replica and a node, or between two nodes. When it is shut, its connections end, and no new ones are accepted. It can
// also hold back some of the messages that pass.
type gate struct {
	listener net.Listener
	held     atomic.Pointer[regexp.Regexp]             // the subjects of a node's messages to hold back, or nil
	asks     atomic.Pointer[func(words []string) bool] // reports whether a message passes, given the words of its first line; or nil
	mu       sync.Mutex
	isShut   bool
	conns    map[net.Conn]bool
}

func newGate(t testing.TB, c *cluster) *gate {
	t.Helper()
	return newGateTo(t, c.nodes[0].Addr().String())
}

func newGateTo(t testing.TB, to string) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{listener: l, conns: map[net.Conn]bool{}}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go g.pass(conn, to)
		}
	}()
	t.Cleanup(func() {
		l.Close()
		g.shut()
	})
	return g
}

func (g *gate) url() string { return "nats://" + g.listener.Addr().String() }

func (g *gate) pass(from net.Conn, address string) {
	to, err := net.Dial("tcp", address)
	if err != nil || !g.keep(from, to) {
		from.Close()
		return
	}
	go func() {
		g.copy(to, from)
		to.Close()
	}()
	g.copy(from, to)
	from.Close()
}

// copy copies everything except messages with subjects that are held back.
func (g *gate) copy(to io.Writer, from io.Reader) {
	in := bufio.NewReaderSize(from, 64<<10)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		size := 0
		kind, _, _ := strings.Cut(line, " ")
		sent := kind == "PUB" || kind == "HPUB"                        // by a client
		if sent || kind == "RMSG" || kind == "HMSG" || kind == "MSG" { // to nodes, the account, unless the route has only one; then the subject, ..., the size
			words := strings.Fields(line)
			if len(words) < 3 {
				return
			}
			if size, err = strconv.Atoi(words[len(words)-1]); err != nil {
				return
			}
			size += len("\r\n")
			held, asks := g.held.Load(), g.asks.Load()
			if !sent && held != nil && slices.ContainsFunc(words[1:3], held.MatchString) || asks != nil && !(*asks)(words) {
				if _, err := in.Discard(size); err != nil {
					return
				}
				continue
			}
		}
		if _, err := io.WriteString(to, line); err != nil {
			return
		}
		if _, err := io.CopyN(to, in, int64(size)); err != nil {
			return
		}
	}
}

func (g *gate) keep(conns ...net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range conns {
		g.conns[c] = true
		if g.isShut {
			c.Close()
		}
	}
	return !g.isShut
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.isShut = true
	for c := range g.conns {
		c.Close()
	}
	clear(g.conns)
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.isShut = false
}
