//go:build !wasip1 && !tinygo.wasm

package capability

import (
	"context"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
	"github.com/toolsrv/toolsrv/sdk/go/internal/double"
)

// ask has the test's replacement for the host answer.
func ask(c context.Context, from func(double.Host) ([]byte, error)) ([]byte, error) {
	var h double.Host
	if c != nil {
		h, _ = c.Value(double.Key{}).(double.Host)
	}
	if h == nil {
		return nil, &toolsrv.Failure{Code: "not_granted", Message: "a native test has no host: call the tool with a toolsrvtest.World"}
	}
	answer, err := from(h)
	if err == nil {
		return answer, nil
	}
	if f, ok := toolsrv.AsType[*toolsrv.Failure](err); ok {
		return nil, f
	}
	return nil, &toolsrv.Failure{Code: "unavailable", Message: err.Error()}
}

// Send sends a request.
func Send(c context.Context, head, body []byte) ([]byte, error) {
	return ask(c, func(h double.Host) ([]byte, error) { return h.Send(head, body) })
}

// Get returns what is under a key.
func Get(c context.Context, key string) ([]byte, error) {
	return ask(c, func(h double.Host) ([]byte, error) { return h.Get(key) })
}

// Set puts a value under a key.
func Set(c context.Context, key string, value []byte, ttl, expect int64) ([]byte, error) {
	return ask(c, func(h double.Host) ([]byte, error) { return h.Set(key, value, ttl, expect) })
}

// Delete removes a key.
func Delete(c context.Context, key string, expect int64) ([]byte, error) {
	return ask(c, func(h double.Host) ([]byte, error) { return h.Delete(key, expect) })
}

// List returns keys.
func List(c context.Context, prefix, after string, limit int32) ([]byte, error) {
	return ask(c, func(h double.Host) ([]byte, error) { return h.List(prefix, after, limit) })
}

// Secret returns a secret.
func Secret(c context.Context, name string) ([]byte, error) {
	return ask(c, func(h double.Host) ([]byte, error) { return h.Secret(name) })
}

// Settings returns the settings.
func Settings(c context.Context) ([]byte, error) {
	return ask(c, func(h double.Host) ([]byte, error) { return h.Settings() })
}

// Call calls another tool.
func Call(c context.Context, path string, arguments []byte) ([]byte, error) {
	return ask(c, func(h double.Host) ([]byte, error) { return h.Call(path, arguments) })
}
