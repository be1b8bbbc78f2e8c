package capability_test

import (
	"io/fs"
	"testing"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
	"github.com/toolsrv/toolsrv/sdk/go/http"
	"github.com/toolsrv/toolsrv/sdk/go/internal/double"
	"github.com/toolsrv/toolsrv/sdk/go/kv"
	"github.com/toolsrv/toolsrv/sdk/go/secrets"
	"github.com/toolsrv/toolsrv/sdk/go/settings"
	"github.com/toolsrv/toolsrv/sdk/go/tools"
)

// same is a host whose answer is always the same.
type same []byte

var _ double.Host = same{}

func (s same) Send(_, _ []byte) ([]byte, error)                 { return s, nil }
func (s same) Get(string) ([]byte, error)                       { return s, nil }
func (s same) Set(string, []byte, int64, int64) ([]byte, error) { return s, nil }
func (s same) Delete(string, int64) ([]byte, error)             { return s, nil }
func (s same) List(string, string, int32) ([]byte, error)       { return s, nil }
func (s same) Secret(string) ([]byte, error)                    { return s, nil }
func (s same) Settings() ([]byte, error)                        { return s, nil }
func (s same) Call(string, []byte) ([]byte, error)              { return s, nil }
func (s same) Dir(string) fs.FS                                 { return nil }

// FuzzAnswers answers with arbitrary bytes: unreadable answers are failures, and nothing panics.
func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{
		"", "\x01", "\x00\x01\x00\x00\x00a", "\x01\xff\xff\xff\xff", "12345678", "1234567812345678value", "3", `{"a": 1}`,
		"\x02\x00\x00\x00{}body", "\x30\x00\x00\x00" + `{"status":200,"url":"x","headers":[["a","b"],[]]}`, "\xff\xff\xff\xff{}", "\x00\x00\x00\x80",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		c := new(toolsrv.Call).WithHost(same(answer))
		response, send := http.Get(c, "https://example.com/")
		if (response == nil) != (send != nil) {
			t.Errorf("got %v and %v", response, send)
		}
		_, _, get := kv.Get(c, "k")
		_, set := kv.Set(c, "k", nil, 0)
		_, remove := kv.Delete(c, "k")
		keys, _, list := kv.List(c, "", "", 0)
		size := 0
		for _, key := range keys {
			size += 4 + len(key)
		}
		if list == nil && size+1 != len(answer) {
			t.Errorf("%d bytes are a list of %d", len(answer), size)
		}
		value, read := secrets.Read(c, "s")
		if string(value) != string(answer) {
			t.Errorf("got the secret %q, want %q", value, answer)
		}
		_, loaded := settings.Read[struct{ A int }](c)
		_, call := tools.Call[float64](c, "t", struct{}{})
		for _, err := range []error{send, get, set, remove, list, read, loaded, call} {
			if _, ok := toolsrv.AsType[*toolsrv.Failure](err); err != nil && !ok {
				t.Errorf("%v is not a failure", err)
			}
		}
	})
}
