//go:build !linux

package compile

import (
	"errors"
	"sync/atomic"
	"syscall"
	"time"
)

// supported is false where the system can't be made to hold the bounds.
const supported = false

type allowance struct{}

func bound(int64, *atomic.Pointer[allowance]) (bool, error) { return false, errors.ErrUnsupported }

func allow(time.Duration) (*allowance, error) { return nil, errors.ErrUnsupported }

func attributes() *syscall.SysProcAttr { return nil }

type meter struct{}

type use struct {
	user, system time.Duration
	bytes        int64
}

func openMeter(int) (*meter, error) { return nil, errors.ErrUnsupported }

func (m *meter) close() {}

func (m *meter) look() (use, error) { return use{}, errors.ErrUnsupported }
