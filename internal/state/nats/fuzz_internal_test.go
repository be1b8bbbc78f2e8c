package nats

import (
	"bytes"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/state"
)

// FuzzHead reads heads that anybody may have written. Whatever it accepts is within its bounds, and encodes to the same bytes.
func FuzzHead(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(newHead(0, 0, 0, nil))
	f.Add(newHead(1<<62, 5, 0, []byte("value")))
	f.Add(newHead(0, state.MaxValue, maxParts, nil))
	f.Add(newHead(-1, 5, 0, []byte("value")))
	f.Add(newHead(0, 6, 0, []byte("value")))
	f.Add(newHead(0, 5, 1, []byte("value")))
	f.Add(newHead(0, state.MaxValue+1, 1, nil))
	f.Add(newHead(0, 5, 255, nil))
	f.Add(append([]byte{2}, newHead(0, 0, 0, nil)[1:]...))
	f.Fuzz(func(t *testing.T, record []byte) {
		e, value, err := parseHead(record, state.MaxValue)
		if err != nil {
			return
		}
		if e.size < 0 || e.size > state.MaxValue || e.expires < 0 || e.parts < 0 || e.parts > maxParts || e.parts == 0 && len(value) != e.size {
			t.Errorf("read %+v with a value of %d bytes", e, len(value))
		}
		if again := newHead(e.expires, e.size, e.parts, value); !bytes.Equal(again, record) {
			t.Errorf("%x is written as %x", record, again)
		}
	})
}

// FuzzSubject reads subjects that anybody may have written to. Whatever it accepts is read in the same way from the subject that the store
// itself would use.
func FuzzSubject(f *testing.F) {
	const b bucket = "toolsrv"
	f.Add("", "")
	f.Add(b.head("space", "key"), "key")
	f.Add(b.turn("space"), "\x00.*>")
	f.Add(b.part("space", "key", 1), "é")
	f.Add(b.head("space", "key")+".more", "k")
	f.Add("$KV.toolsrv.e..", "k")
	f.Add("$KV.toolsrv.e.c3BhY2U.a2V5\n", "k")
	f.Add("$KV.another.e.c3BhY2U.a2V5", strings.Repeat("k", state.MaxKey))
	f.Add("", strings.Repeat("2", state.MaxKey+1))
	f.Fuzz(func(t *testing.T, subject, name string) {
		if space, key, err := b.parse(subject); err == nil {
			s, k, err := b.parse(b.head(space, key))
			if key == "" {
				s, k, err = b.parse(b.turn(space))
			}
			if err != nil || s != space || k != key || space == "" {
				t.Errorf("%q is read as %q and %q, which are read as %q and %q, %v", subject, space, key, s, k, err)
			}
		}
		if name == "" {
			return
		}
		subject = b.head(name, name)
		if strings.ContainsAny(subject[len("$KV.toolsrv.e."):], "*> \t\r\n") {
			t.Errorf("the subject %q of %q has characters that NATS does not accept", subject, name)
		}
		switch s, k, err := b.parse(subject); {
		case len(name) > state.MaxKey:
			if err == nil {
				t.Errorf("a name of %d bytes is read", len(name))
			}
		case err != nil || s != name || k != name:
			t.Errorf("%q is read as %q and %q, %v", name, s, k, err)
		}
	})
}
