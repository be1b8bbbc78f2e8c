//go:build !linux

package apart

import (
	"errors"
	"sync/atomic"
	"syscall"
	"time"
)

// Supported is false where the operating system can't enforce the bounds.
const Supported = false

func bound(int64, Bounds, *atomic.Pointer[allowance]) (bool, error) { return false, nil }

func allow(Limit) (allowance, error) { return allowance{}, nil }

// Attributes returns nil: this system has no such attributes.
func Attributes() *syscall.SysProcAttr { return nil }

// A Meter measures nothing on this system.
type Meter struct{}

// A Use is what a process has used: time on a processor, including the system's on its behalf, and bytes of memory that it shares with nobody.
type Use struct {
	User, System time.Duration
	Bytes        int64
}

// OpenMeter returns an error.
func OpenMeter(int) (*Meter, error) { return nil, errors.ErrUnsupported }

// Close does nothing.
func (m *Meter) Close() {}

// Look returns an error.
func (m *Meter) Look() (Use, error) { return Use{}, errors.ErrUnsupported }
