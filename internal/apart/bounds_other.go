//go:build !linux

package apart

import (
	"errors"
	"syscall"
	"time"
)

// Attributes are none where the system has none.
func Attributes() *syscall.SysProcAttr { return nil }

// A Meter tells nothing here.
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
