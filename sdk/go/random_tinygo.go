//go:build tinygo.wasm

package toolsrv

import (
	"crypto/rand"

	"github.com/toolsrv/toolsrv/sdk/go/internal/random"
)

// With TinyGo's own reader, crypto/rand would return the same numbers in every call.
var _ = replaceReader()

func replaceReader() struct{} {
	rand.Reader = random.Reader{}
	return struct{}{}
}
