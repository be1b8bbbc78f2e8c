//go:build !linux

package compile

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// supported is false where the system can't be made to hold the bounds.
const supported = false

func bound(int64) error { return errors.ErrUnsupported }

func allow(time.Duration) error { return errors.ErrUnsupported }

func attributes() *syscall.SysProcAttr { return nil }

func kill(p *os.Process) { _ = p.Kill() }

func used(int) (cpu time.Duration, bytesUsed int64, err error) { return 0, 0, errors.ErrUnsupported }
