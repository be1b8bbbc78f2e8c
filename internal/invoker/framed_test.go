package invoker_test

import (
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/invoker"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestReadFramed reads messages with arguments, each of the allowed size or larger.
func TestReadFramed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		message, frame int64 // bytes
		arguments      string
		want           wasmtools.Code
	}{
		{150, 50, `{"n":1}`, ""},
		{151, 50, `{"n":1}`, wasmtools.CodeInputTooLarge},
		{150, 50, `{"n":` + strings.Repeat(" ", 93) + `1}`, ""},
		{150, 50, `{"n":` + strings.Repeat(" ", 94) + `1}`, wasmtools.CodeInputTooLarge},
		{100, 0, `{}`, ""},
	} {
		table := tableOf(t, tool("echo", echo)) // takes 100 bytes
		c := &wasmtools.Call{Principal: wasmtools.Everybody()}
		i, err := invoker.New(invoker.Options{}).Begin(table.Tools()[0], c)
		if err != nil {
			t.Fatal(err)
		}
		err = i.ReadFramed(strings.NewReader(strings.Repeat("x", int(test.message))), -1, test.frame)
		if err == nil {
			if int64(len(c.Arguments)) != test.message {
				t.Errorf("%+v: got %d bytes", test, len(c.Arguments))
			}
			c.Arguments = []byte(test.arguments)
			_, err = i.Run(t.Context())
		}
		i.End(err)
		if codeOf(err) != test.want {
			t.Errorf("%+v: got %v", test, err)
		}
	}
}
