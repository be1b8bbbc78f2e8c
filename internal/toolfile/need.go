package toolfile

import (
	"bytes"
	"fmt"

	"github.com/toolsrv/toolsrv/internal/text"
)

// These are the memory needs of loading a file, in bytes.
const (
	// loadCopies is how many copies of the content exist: as read, as kept, and compressed or parsed.
	loadCopies = 3
	// textCopies is how many copies of a manifest's text exist at a time, including the copies of its schemas.
	textCopies = 6
	// valueNeeds is how many bytes each value of a manifest takes in the trees of schemas and of the metaschema's check, which exist at the same
	// time. defaultNeeds is how many it takes in the trees of defaults.
	valueNeeds   = 240
	defaultNeeds = 240
)

// A NeedError means that loading a file takes more memory than the Most of its Place.
type NeedError struct {
	Needs, Most int64 // bytes
}

// Error says how much memory is missing, and what to do.
func (e *NeedError) Error() string {
	return fmt.Sprintf("loading it takes up to %s of memory, but a file may take only %s, which depends on server.memory: make the file or its manifest smaller, or raise server.memory",
		text.Size(e.Needs), text.Size(e.Most))
}

// allows returns a *NeedError if loading may not take this many bytes.
func (p *Place) allows(needs int64) error {
	if p.Most > 0 && needs > p.Most {
		return &NeedError{needs, p.Most}
	}
	return nil
}

// manifestNeeds returns how many bytes reading a manifest and compiling its schemas takes at most, without what is kept.
func manifestNeeds(text []byte) int64 {
	values := 1
	for _, before := range []string{",", "[", "{"} { // this also counts the few that are within strings
		values += bytes.Count(text, []byte(before))
	}
	each := int64(valueNeeds)
	if bytes.Contains(text, []byte("default")) || bytes.Contains(text, []byte(`\u`)) {
		each += defaultNeeds
	}
	return textCopies*int64(len(text)) + each*int64(values)
}
