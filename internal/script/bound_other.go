//go:build !linux

package script

import "runtime/debug"

// bound makes this process end when its stack takes more than a helper's may. Its time is bounded from outside.
func bound(memory int64) error {
	debug.SetMaxStack(helperStack)
	if memory > helperSmall { // to keep garbage small takes time of the processor, and the script can have more
		debug.SetMemoryLimit(memory / 8 * 7)
	}
	return nil
}
