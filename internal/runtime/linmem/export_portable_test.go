//go:build !linux

package linmem

// NewReadImage is NewImage: the Linux version does not exist here.
func NewReadImage(content []byte) (*Image, error) { return new(Store).NewImage(content) }

const KeepResident, AgeEvery = 4 << 20, 32
