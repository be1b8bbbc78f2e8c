package wasi

import (
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
)

// maxOpen is how many descriptors a call may have open, not counting the three that every process has. It is also how many files and directories a
// tool may have open in a client's call and all calls inside it.
const maxOpen = 64

// A process is what the set keeps for one call.
type process struct {
	streams
	grant *Permission   // nil: nothing is granted
	open  []*descriptor // from rootFD on; a closed one is nil. Empty until a function needs files
	trees map[string]Tree
	piece []byte // what was read from a file, before it is copied to the guest
}

// A descriptor is an open file or directory.
type descriptor struct {
	name    string  // its path below "/"; "." is "/" itself
	file    fs.File // nil: "/"
	preopen bool
	dir     bool
	offset  int64 // offset of the next read
	listing *listing
	sum     int64         // bytes that were read
	took    time.Duration // time for opening and reading
}

// Roughly what the host holds for a guest, in bytes.
const (
	heldForFile    = 1 << 10
	heldForListing = 24 << 10
)

// current returns the call's process.
func current(c *hostcall.Call) *process {
	p, ok := c.Local().(*process)
	if !ok {
		p = &process{}
		c.Keep(p)
	}
	return p
}

// files is current for functions that need descriptors. "/" is open in each call. The grant decides what it contains, and whether the guest may look
// at it. In a start it is empty.
func files(c *hostcall.Call) *process {
	p := current(c)
	if p.open == nil {
		p.open = []*descriptor{{name: ".", preopen: true, dir: true}}
		if p.grant, _ = c.Grant().(*Permission); p.grant == nil && !c.Serving() {
			p.grant = &Permission{}
		}
	}
	return p
}

// grants reports whether the file with that name below "/" is in a granted directory. Anything else does not exist for the guest, and looking for it
// is not a use of the grant. Interpreters look for files of their own when they start, and for the lines of a traceback.
func (p *process) grants(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return p.grant != nil && p.grant.Directories[first] != nil
}

// opened returns an open file or directory, or nil. It also returns nil for the three streams.
func opened(c *hostcall.Call, fd uint64) *descriptor {
	if uint32(fd) < rootFD {
		return nil
	}
	p := files(c)
	if uint32(fd)-rootFD >= uint32(len(p.open)) {
		return nil
	}
	return p.open[uint32(fd)-rootFD]
}

// room reports whether the call may open one more descriptor.
func (p *process) room() bool {
	if len(p.open) < maxOpen {
		return true
	}
	for _, d := range p.open {
		if d == nil {
			return true
		}
	}
	return false
}

// add gives a descriptor the lowest free number. There must be room.
func (p *process) add(d *descriptor) (fd uint32) {
	for i, other := range p.open {
		if other == nil {
			p.open[i] = d
			return rootFD + uint32(i)
		}
	}
	p.open = append(p.open, d)
	return rootFD + uint32(len(p.open)-1)
}

// acquire makes room for a file that is about to be opened. It returns false if all calls together have too many open. It may end the call, but never
// while it holds a descriptor that nobody would give back.
func acquire(c *hostcall.Call) bool {
	c.Charge(costOpen)
	c.Hold(heldForFile)
	if !c.TakeDescriptor() {
		c.Hold(-heldForFile)
		return false
	}
	return true
}

// release is called for a file that was closed, or could not be opened.
func release(c *hostcall.Call) {
	c.GiveDescriptor()
	c.Hold(-heldForFile)
}

// acquireFile is acquire for a file that counts towards maxOpen of a client's call. It returns an error number if there can't be one more.
func acquireFile(c *hostcall.Call) (errno uint64) {
	switch {
	case !acquire(c):
		return errnoNFile
	case c.Tally(1) > maxOpen:
		releaseFile(c)
		return errnoMFile
	}
	return errnoSuccess
}

// releaseFile undoes acquireFile.
func releaseFile(c *hostcall.Call) {
	c.Tally(-1)
	release(c)
}

// close closes a file, and counts its use. The error of closing a file that was only read does not matter.
func (d *descriptor) close(c *hostcall.Call) {
	if d.listing != nil {
		c.Hold(-heldForListing)
		d.listing = nil
	}
	if d.file == nil {
		return
	}
	_ = d.file.Close()
	d.file = nil
	releaseFile(c)
	used(c, d.name, d.sum, d.took, errnoSuccess)
}

// used counts the use of the file with that name below "/".
func used(c *hostcall.Call, name string, read int64, took time.Duration, errno uint64) {
	c.Used(hostcall.Use{Capability: "files", Target: path.Join(rootName, name), Received: read, Took: took, Outcome: errnoNames[errno]})
}

// End logs the unfinished lines of the streams, and closes everything that is open.
func (p *process) End(c *hostcall.Call) {
	for _, d := range p.open {
		if d != nil {
			d.close(c)
		}
	}
	for _, t := range p.trees {
		_ = t.Close()
		release(c)
	}
	p.open, p.trees = nil, nil
	p.flush(c)
}
