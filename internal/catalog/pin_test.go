package catalog_test

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/configured"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// pins returns pins made of pairs: what a pin matches, and the content that it requires.
func pins(pairs ...any) *configured.Pins {
	c := &config.Config{}
	for i := 0; i < len(pairs); i += 2 {
		sum := sha256.Sum256(pairs[i+1].([]byte))
		c.Pins = append(c.Pins, config.Pin{Match: pairs[i].(string), SHA256: hex.EncodeToString(sum[:])})
	}
	return configured.PinsOf(c)
}

// TestPins tries contents other than the pinned one: at the start, in place of the right one, after the right one is gone, in another file, and from
// the moment when a pin takes effect. No such content is ever called.
// Proves: No tool takes another's place
func TestPins(t *testing.T) {
	t.Parallel()
	a := newArea(t)
	right, wrong, other := version(t, "right", "pay", "send"), version(t, "wrong", "pay", "send"), version(t, "other", "web", "get")
	m := a.source("/m", "")
	m.set("send.wasm", wrong, nil)
	m.set("get.wasm", other, nil)
	c, err := catalog.Start(t.Context(), catalog.Options{Engine: a.engine, Poll: 20 * time.Millisecond, Sources: []catalog.Sourced{{Source: m}}, Pins: pins("pay/*", right)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	end := never(t, c, "/pay/send", "wrong")
	awaitTable(t, c, []string{"/web/get"}, []string{"m:send.wasm"})
	sum := func(content []byte) string { s := sha256.Sum256(content); return hex.EncodeToString(s[:]) }
	if got, want := reason(c.Table().Current(), "/m:send.wasm"), "/pay/send is pinned to "+sum(right)+", but the file is "+sum(wrong)+": put the pinned file back"; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	m.set("send.wasm", right, nil)
	awaitAnswer(t, c, "/pay/send", "right")
	m.set("send.wasm", wrong, nil) // the right one stays
	awaitTable(t, c, []string{"/pay/send", "/web/get"}, []string{"m:send.wasm"})
	awaitAnswer(t, c, "/pay/send", "right")
	if _, err := c.Check(t.Context(), catalog.FileID{SourceID: "/m", Name: "up.wasm"}, wrong); err == nil || !strings.Contains(err.Error(), "is pinned to") {
		t.Errorf("Check: got %v", err)
	}
	m.set("thief.wasm", wrong, nil)
	m.remove("send.wasm")
	awaitTable(t, c, []string{"/web/get"}, []string{"m:thief.wasm"})

	// From now on the other file is pinned, too, by its tools and by its name: first to another content, and then to its own.
	for _, p := range []*configured.Pins{pins("pay", right, "**/get", right), pins("pay", right, "get.wasm", right), pins("pay", right, "web", other, "web/*", right)} {
		if err := c.Reconfigure(catalog.Configuration{Pins: p}); err != nil {
			t.Fatal(err)
		}
		if got := paths(c.Table().Current()); got != nil {
			t.Fatalf("after Reconfigure: got %q", got)
		}
		awaitTable(t, c, nil, []string{"m:get.wasm", "m:thief.wasm"})
		for _, p := range []*configured.Pins{pins("pay", right, "web", right, "web", other, "get.wasm", other), pins("pay", right)} {
			if err := c.Reconfigure(catalog.Configuration{Pins: p}); err != nil {
				t.Fatal(err)
			}
			awaitTable(t, c, []string{"/web/get"}, []string{"m:thief.wasm"})
		}
	}
	end()
	if err := c.Reconfigure(catalog.Configuration{Pins: pins("get.wasm", other)}); err != nil { // the pin of pay is gone
		t.Fatal(err)
	}
	await(t, c, "both", func(g *wasmtools.Generation) bool { return slices.Equal(paths(g), []string{"/pay/send", "/web/get"}) })
}
