package linmem

// NewReadImage is NewImage on a kernel without PAGEMAP_SCAN.
func NewReadImage(content []byte) (*Image, error) {
	image, err := new(Store).NewImage(content)
	if err == nil && image.file != nil {
		image.file.pagemap = &pagemap{fd: image.file.pagemap.fd, faults: noFaultDescriptor}
	}
	return image, err
}

const KeepResident, AgeEvery = keepResident, ageEvery
