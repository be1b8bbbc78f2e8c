package peer

import (
	"context"
	"fmt"
	"time"

	extism "github.com/extism/go-sdk"
)

// Extism is one plugin of Extism's SDK, which keeps its state from call to call. It is not safe for concurrent use.
type Extism struct{ plugin *extism.Plugin }

// NewExtism loads the plugin at path. Each call is limited to timeout.
func NewExtism(ctx context.Context, path string, timeout time.Duration) (*Extism, error) {
	manifest := extism.Manifest{
		Wasm:    []extism.Wasm{extism.WasmFile{Path: path}},
		Timeout: uint64(timeout.Milliseconds()),
	}
	plugin, err := extism.NewPlugin(ctx, manifest, extism.PluginConfig{EnableWasi: true}, nil)
	if err != nil {
		return nil, err
	}
	return &Extism{plugin}, nil
}

// Call calls the export and returns its output.
func (e *Extism) Call(ctx context.Context, export string, input []byte) ([]byte, error) {
	code, output, err := e.plugin.CallWithContext(ctx, export, input)
	if err == nil && code != 0 {
		err = fmt.Errorf("the plugin returned %d", code)
	}
	return output, err
}

// Close frees the plugin.
func (e *Extism) Close(ctx context.Context) error { return e.plugin.Close(ctx) }
