//go:build !linux

package compile

import (
	"errors"
	"sync/atomic"
	"time"
)

// supported is false where the system can't be made to hold the bounds.
const supported = false

type allowance struct{}

func bound(int64, *atomic.Pointer[allowance]) (bool, error) { return false, errors.ErrUnsupported }

func allow(time.Duration) (*allowance, error) { return nil, errors.ErrUnsupported }
