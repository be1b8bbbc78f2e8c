package wasi

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
)

// A listing is a guest's position in a directory. It holds few entries at a time, however large the directory is. A cookie is the number of
// the next entry.
type listing struct {
	begin   uint64 // number of the first of entries
	entries []entry
	ended   bool   // the directory has no further entries
	known   uint64 // the highest number that the guest may ask for
}

type entry struct {
	name string
	kind byte
}

// entriesAtOnce is how many entries are read at a time.
const entriesAtOnce = 64

// entrySize is the size of an entry without its name, in bytes.
const entrySize = 24

// fdReadDir writes the entries from a cookie on. The last one may be cut off, which tells the guest that there are more.
func fdReadDir(c *hostcall.Call, stack []uint64) {
	if uint32(stack[0]) < rootFD {
		stack[0] = errnoNotCapable
		return
	}
	d := opened(c, stack[0])
	switch {
	case d == nil:
		stack[0] = errnoBadF
		return
	case !d.dir:
		stack[0] = errnoNotDir
		return
	case files(c).grant == nil:
		stack[0] = errnoNotCapable
		return
	}
	space := c.View(stack[1], stack[2])
	rest, cookie := space, stack[3]
	for len(rest) > 0 {
		e, errno := d.entry(c, cookie)
		if errno != errnoSuccess {
			stack[0] = errno
			return
		}
		if e == nil {
			break
		}
		cookie++
		c.Charge(costEntry)
		var head [entrySize]byte
		binary.LittleEndian.PutUint64(head[0:], cookie)
		binary.LittleEndian.PutUint64(head[8:], number(path.Join(d.name, e.name)))
		binary.LittleEndian.PutUint32(head[16:], uint32(len(e.name)))
		head[20] = e.kind
		rest = rest[copy(rest, head[:]):]
		rest = rest[copy(rest, e.name):]
	}
	c.WriteUint32(stack[4], uint32(len(space)-len(rest)))
	stack[0] = errnoSuccess
}

// entry returns the entry with that number, or nil at the end. A guest may go back to a number that it has seen, but not ahead.
func (d *descriptor) entry(c *hostcall.Call, number uint64) (*entry, uint64) {
	if d.listing == nil {
		c.Hold(heldForListing)
		d.listing = &listing{}
		if d.file == nil {
			d.listing.ended = true
			for _, name := range slices.Sorted(maps.Keys(current(c).grant.Directories)) {
				d.listing.entries = append(d.listing.entries, entry{name, typeDirectory})
			}
		}
	}
	l := d.listing
	if number > l.known {
		return nil, errnoInval
	}
	l.known = max(l.known, number+1)
	if number < l.begin {
		if errno := d.rewind(c); errno != errnoSuccess {
			return nil, errno
		}
	}
	for number >= l.begin+uint64(len(l.entries)) {
		if l.ended {
			return nil, errnoSuccess
		}
		if errno := l.next(c, d.file); errno != errnoSuccess {
			return nil, errno
		}
	}
	return &l.entries[number-l.begin], errnoSuccess
}

// next reads the next entries.
func (l *listing) next(c *hostcall.Call, file fs.File) uint64 {
	dir, ok := file.(fs.ReadDirFile)
	if !ok {
		return errnoNotSup
	}
	list, err := dir.ReadDir(entriesAtOnce)
	c.Charge(costRead + costEntry*len(list))
	if len(list) == 0 && err != nil && !errors.Is(err, io.EOF) {
		return errnoOf(err)
	}
	l.begin += uint64(len(l.entries))
	l.entries = l.entries[:0]
	for _, e := range list {
		l.entries = append(l.entries, entry{e.Name(), fileType(e.Type())})
	}
	l.ended = len(list) == 0
	return errnoSuccess
}

// rewind makes the listing begin again.
func (d *descriptor) rewind(c *hostcall.Call) uint64 {
	dir, ok := d.file.(io.Seeker)
	if !ok {
		return errnoNotSup
	}
	c.Charge(costRead)
	if _, err := dir.Seek(0, io.SeekStart); err != nil {
		return errnoOf(err)
	}
	*d.listing = listing{entries: d.listing.entries[:0], known: d.listing.known}
	return errnoSuccess
}
