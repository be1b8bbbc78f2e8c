//go:build !linux

package script

import "runtime/debug"

// bound has this process end when its stack takes more than a helper's may. Its time is bounded from outside.
func bound() error {
	debug.SetMaxStack(helperStack)
	debug.SetMemoryLimit(helperMemory / 2)
	return nil
}
