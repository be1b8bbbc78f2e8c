package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/toolsrv/toolsrv/bench/internal/service"
)

// launderer is a script with three tools. The first sends requests until one is refused, and then calls itself through the host to send more. The
// second may send no requests, but calls the first again and again. It also calls the third, which returns a secret in each call.
const launderer = `from toolsrv import Failure, Needs, http, needs, secrets, tool, tools

def more(depth: int) -> None:
    for _ in range(3):
        try:
            tools.call("attack/launder", depth=depth)
        except Failure:
            pass

@tool(needs=Needs(http=["%[1]s/"], tools=["attack/launder"]))
def launder(depth: int) -> int:
    """Send requests."""
    try:
        while True:
            http.get("%[1]s/")
    except Failure:
        if depth > 0:
            more(depth - 1)
    return depth

@tool(needs=Needs(secrets=["key"]))
def spill() -> str:
    """Say a secret."""
    return secrets.read("key")

@tool(needs=Needs(tools=["attack/launder", "attack/spill"]))
def many(number: int) -> int:
    """Have requests sent and a secret printed."""
    more(2)
    for _ in range(20):
        tools.call("attack/spill")
    return number
`

func attackLaunder(ctx context.Context, a *arena) error {
	const limit, calls = 2, 10
	var arrived atomic.Int64
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived.Add(1) }))
	defer target.Close()
	folder := filepath.Join(service.Tools(a.directory), namespace)
	err := errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(filepath.Join(folder, "launder.py"), fmt.Appendf(nil, launderer, target.URL), 0o600))
	if err != nil {
		return err
	}
	var spilt atomic.Int64
	each := func(line []byte) {
		if bytes.Contains(line, []byte("a secret was removed")) {
			spilt.Add(1)
		}
	}
	s, err := a.start(ctx, service.Options{Env: []string{"ATTACK_KEY=0123456789abcdef0123456789abcdef"}, Each: each, Rest: withScripts + fmt.Sprintf(`
[limits]
timeout = "20s"
[[grant]]
match = "attack/*"
tools = ["attack/launder", "attack/spill"]
secrets = ["key"]
[secrets]
environment = {key = "ATTACK_KEY"}
[[grant]]
match = "attack/launder"
http = [%q]
private = ["127.0.0.0/8"]
http_requests = %d
`, target.URL+"/", limit)})
	if err != nil {
		return err
	}
	got := load{clients: 1, path: times(calls, func(int) string { return "/" + namespace + "/many" }), output: func(i int) string { return fmt.Sprint(i) }}.run(ctx, s)
	a.tell("%v, %d requests arrived, and %d log lines mention the secret", &got, arrived.Load(), spilt.Load())
	if err := got.judge(s); err != nil {
		return err
	}
	if n := arrived.Load(); n != limit*calls {
		return fmt.Errorf("%d calls sent %d requests, want %d", calls, n, limit*calls)
	}
	if n := spilt.Load(); n != calls {
		return fmt.Errorf("%d calls wrote %d log lines that mention a secret, want one each", calls, n)
	}
	return nil
}
