package toolsrvtest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
)

// kept is what is known of a key beside its value.
type kept struct {
	value   []byte // the value at that version: a test may have put another under the key
	version uint64
	expires int64 // in milliseconds since 1970; 0 means never
}

// keys is how many keys a list has where the tool leaves that to the host.
const keys = 1000

func (w *World) now() time.Time {
	if w.Now != nil {
		return w.Now()
	}
	return time.Now()
}

// next returns a version that it has not returned before. w.mu is held.
func (w *World) next() uint64 {
	w.version++
	return w.version
}

// look returns what is under a key, and removes what has expired. w.mu is held.
func (w *World) look(key string) (kept, bool) {
	value, found := w.KV[key]
	if !found {
		delete(w.kept, key)
		return kept{}, false
	}
	k, known := w.kept[key]
	if !known || !bytes.Equal(k.value, value) {
		k = kept{value: bytes.Clone(value), version: w.next()}
		w.remember(key, k)
	}
	if k.expires != 0 && k.expires <= w.now().UnixMilli() {
		w.drop(key)
		return kept{}, false
	}
	return k, true
}

func (w *World) drop(key string) {
	delete(w.KV, key)
	delete(w.kept, key)
}

func (w *World) remember(key string, k kept) {
	if w.kept == nil {
		w.kept = map[string]kept{}
	}
	w.kept[key] = k
}

// expected reports whether what is under a key is as a write expects it.
func expected(k kept, found bool, expect int64) bool {
	switch expect {
	case -1:
		return true
	case 0:
		return !found
	}
	return found && k.version == uint64(expect)
}

// conflict is the failure of a write that expected something else.
func conflict(key string) error { return failure("conflict", "the key %q has another version", key) }

// Get returns a value with its version and expiry.
func (h *host) Get(key string) ([]byte, error) {
	if !h.needs.KV {
		return nil, undeclared("kv")
	}
	h.world.mu.Lock()
	defer h.world.mu.Unlock()
	k, found := h.world.look(key)
	if !found {
		return nil, nil
	}
	out := binary.LittleEndian.AppendUint64(nil, k.version)
	return append(binary.LittleEndian.AppendUint64(out, uint64(k.expires)), k.value...), nil
}

// Set writes a value.
func (h *host) Set(key string, value []byte, ttl, expect int64) ([]byte, error) {
	if !h.needs.KV {
		return nil, undeclared("kv")
	}
	w := h.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if old, found := w.look(key); !expected(old, found, expect) {
		return nil, conflict(key)
	}
	k := kept{value: bytes.Clone(value), version: w.next()}
	if ttl > 0 {
		k.expires = w.now().UnixMilli() + ttl
	}
	if w.KV == nil {
		w.KV = map[string][]byte{}
	}
	w.KV[key] = bytes.Clone(value)
	w.remember(key, k)
	return binary.LittleEndian.AppendUint64(nil, k.version), nil
}

// Delete removes a key.
func (h *host) Delete(key string, expect int64) ([]byte, error) {
	if !h.needs.KV {
		return nil, undeclared("kv")
	}
	h.world.mu.Lock()
	defer h.world.mu.Unlock()
	k, found := h.world.look(key)
	if !expected(k, found, expect) {
		return nil, conflict(key)
	}
	if h.world.drop(key); found {
		return []byte{1}, nil
	}
	return []byte{0}, nil
}

// List returns keys in order.
func (h *host) List(prefix, after string, limit int32) ([]byte, error) {
	if !h.needs.KV {
		return nil, undeclared("kv")
	}
	h.world.mu.Lock()
	defer h.world.mu.Unlock()
	if limit <= 0 || limit > keys {
		limit = keys
	}
	out := []byte{0}
	for _, key := range slices.Sorted(maps.Keys(h.world.KV)) {
		if !strings.HasPrefix(key, prefix) || key <= after && after != "" {
			continue
		}
		if _, found := h.world.look(key); !found {
			continue
		}
		if limit == 0 {
			out[0] = 1
			break
		}
		limit--
		out = append(binary.LittleEndian.AppendUint32(out, uint32(len(key))), key...)
	}
	return out, nil
}

// Secret returns the value of a secret.
func (h *host) Secret(name string) ([]byte, error) {
	if !slices.Contains(h.needs.Secrets, name) {
		return nil, undeclared("secret " + name)
	}
	value, ok := h.world.Secrets[name]
	if !ok {
		return nil, missing("secret " + name)
	}
	return []byte(value), nil
}

// Settings returns the settings.
func (h *host) Settings() ([]byte, error) {
	if h.needs.Settings == nil {
		return nil, undeclared("settings")
	}
	if h.settings == nil {
		return nil, missing("settings")
	}
	return h.settings, nil
}

// Call calls the test's function for another tool.
func (h *host) Call(path string, arguments []byte) ([]byte, error) {
	if !slices.Contains(h.needs.Tools, path) {
		return nil, undeclared("tool " + path)
	}
	tool, ok := h.world.Tools[path]
	if !ok {
		return nil, missing("tool " + path)
	}
	result, err := tool(string(arguments))
	if err == nil {
		return []byte(result), nil
	}
	if f, ok := toolsrv.AsType[*toolsrv.Failure](err); ok {
		return nil, f
	}
	e := toolsrv.AsError(err)
	failed := &toolsrv.Failure{Code: "tool_error", Message: e.Message, ToolCode: e.Code}
	if e.Data != nil {
		if failed.Data, err = json.Marshal(e.Data); err != nil {
			return nil, err
		}
	}
	return nil, failed
}

// Dir returns a folder.
func (h *host) Dir(name string) fs.FS {
	if !slices.Contains(h.needs.Files, name) {
		return nil
	}
	return h.world.Files[name]
}
