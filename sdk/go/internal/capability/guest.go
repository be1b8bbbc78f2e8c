//go:build wasip1 || tinygo.wasm

package capability

import (
	"context"
	"runtime"
	"unsafe"
)

// The host's functions. The linker leaves out those that a tool does not reach. Each returns the size of its answer in bytes; a negative number is
// the size of a failure. Once the guest has made room for that many bytes, answer_read copies them to the address.

//go:wasmimport toolsrv_http_v1 send
func httpSend(head unsafe.Pointer, headSize uint32, body unsafe.Pointer, bodySize uint32) int32

//go:wasmimport toolsrv_http_v1 answer_read
func httpAnswer(to unsafe.Pointer)

//go:wasmimport toolsrv_kv_v1 get
func kvGet(key unsafe.Pointer, size uint32) int32

//go:wasmimport toolsrv_kv_v1 set
func kvSet(key unsafe.Pointer, keySize uint32, value unsafe.Pointer, valueSize uint32, ttl, expect int64) int32

//go:wasmimport toolsrv_kv_v1 delete
func kvDelete(key unsafe.Pointer, size uint32, expect int64) int32

//go:wasmimport toolsrv_kv_v1 list
func kvList(prefix unsafe.Pointer, prefixSize uint32, after unsafe.Pointer, afterSize uint32, limit int32) int32

//go:wasmimport toolsrv_kv_v1 answer_read
func kvAnswer(to unsafe.Pointer)

//go:wasmimport toolsrv_secrets_v1 read
func secretsRead(name unsafe.Pointer, size uint32) int32

//go:wasmimport toolsrv_secrets_v1 answer_read
func secretsAnswer(to unsafe.Pointer)

//go:wasmimport toolsrv_settings_v1 read
func settingsRead() int32

//go:wasmimport toolsrv_settings_v1 answer_read
func settingsAnswer(to unsafe.Pointer)

//go:wasmimport toolsrv_tools_v1 call
func toolsCall(path unsafe.Pointer, pathSize uint32, arguments unsafe.Pointer, size uint32) int32

//go:wasmimport toolsrv_tools_v1 answer_read
func toolsAnswer(to unsafe.Pointer)

// answer takes the answer of a function that has returned n.
func answer(n int32, read func(to unsafe.Pointer)) ([]byte, error) {
	size := int64(n)
	if size < 0 {
		size = -size
	}
	out := make([]byte, size)
	if size > 0 {
		read(unsafe.Pointer(unsafe.SliceData(out)))
	}
	if n < 0 {
		return nil, failure(out)
	}
	return out, nil
}

// text is the place of a text and its size, for an import. The caller keeps the text alive.
func text(s string) (unsafe.Pointer, uint32) {
	return unsafe.Pointer(unsafe.StringData(s)), uint32(len(s))
}

// data is text for bytes.
func data(b []byte) (unsafe.Pointer, uint32) {
	return unsafe.Pointer(unsafe.SliceData(b)), uint32(len(b))
}

// Send sends a request.
func Send(_ context.Context, head, body []byte) ([]byte, error) {
	at, size := data(head)
	bodyAt, bodySize := data(body)
	n := httpSend(at, size, bodyAt, bodySize)
	runtime.KeepAlive(head)
	runtime.KeepAlive(body)
	return answer(n, func(to unsafe.Pointer) { httpAnswer(to) })
}

// Get returns what is under a key.
func Get(_ context.Context, key string) ([]byte, error) {
	n := kvGet(text(key))
	runtime.KeepAlive(key)
	return answer(n, func(to unsafe.Pointer) { kvAnswer(to) })
}

// Set puts a value under a key.
func Set(_ context.Context, key string, value []byte, ttl, expect int64) ([]byte, error) {
	at, size := text(key)
	valueAt, valueSize := data(value)
	n := kvSet(at, size, valueAt, valueSize, ttl, expect)
	runtime.KeepAlive(key)
	runtime.KeepAlive(value)
	return answer(n, func(to unsafe.Pointer) { kvAnswer(to) })
}

// Delete removes a key.
func Delete(_ context.Context, key string, expect int64) ([]byte, error) {
	at, size := text(key)
	n := kvDelete(at, size, expect)
	runtime.KeepAlive(key)
	return answer(n, func(to unsafe.Pointer) { kvAnswer(to) })
}

// List returns keys.
func List(_ context.Context, prefix, after string, limit int32) ([]byte, error) {
	at, size := text(prefix)
	afterAt, afterSize := text(after)
	n := kvList(at, size, afterAt, afterSize, limit)
	runtime.KeepAlive(prefix)
	runtime.KeepAlive(after)
	return answer(n, func(to unsafe.Pointer) { kvAnswer(to) })
}

// Secret returns a secret.
func Secret(_ context.Context, name string) ([]byte, error) {
	n := secretsRead(text(name))
	runtime.KeepAlive(name)
	return answer(n, func(to unsafe.Pointer) { secretsAnswer(to) })
}

// Settings returns the settings. It is the only one that answers before there is a call.
func Settings(context.Context) ([]byte, error) {
	return answer(settingsRead(), func(to unsafe.Pointer) { settingsAnswer(to) })
}

// Call calls another tool.
func Call(_ context.Context, path string, arguments []byte) ([]byte, error) {
	at, size := text(path)
	argumentsAt, argumentsSize := data(arguments)
	n := toolsCall(at, size, argumentsAt, argumentsSize)
	runtime.KeepAlive(path)
	runtime.KeepAlive(arguments)
	return answer(n, func(to unsafe.Pointer) { toolsAnswer(to) })
}
