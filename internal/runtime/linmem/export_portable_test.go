//go:build !linux

package linmem

// NewReadImage is NewImage: what it is on Linux is not there.
func NewReadImage(content []byte) (*Image, error) { return new(Store).NewImage(content) }

const KeepResident, AgeEvery = 4 << 20, 32
