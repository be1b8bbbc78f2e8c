package linmem_test

import (
	"testing"

	"github.com/toolsrv/toolsrv/runtime/linmem"
)

func TestSmoke(t *testing.T) {
	content := make([]byte, 4*65536)
	for i := 65536; i < 2*65536; i++ {
		content[i] = byte(i)
	}
	im, err := linmem.NewImage(content)
	if err != nil {
		t.Fatal(err)
	}
	m, err := im.Map(4 << 30)
	if err != nil {
		t.Fatal(err)
	}
	if !m.Equal() {
		t.Fatal("not equal")
	}
	b := m.Bytes()
	b[0], b[65536], b[3*65536], b[len(b)-1] = 1, 2, 3, 4
	if m.Equal() {
		t.Fatal("equal")
	}
	t.Log(m.Resident())
	t.Log(m.Reset())
	if !m.Equal() {
		t.Fatal("not equal")
	}
	t.Log(m.Reset())
	t.Log(m.Resident())
	t.Log(m.Free(), im.Close())
}
