package wasi

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"io"
	"io/fs"
	"math"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
)

// The types of files.
const (
	typeUnknown   = 0
	typeDirectory = 3
	typeRegular   = 4
	typeLink      = 7
)

// fileType returns what guests see of a file's type. Of files that they can't open, they see only that they exist.
func fileType(mode fs.FileMode) byte {
	switch mode.Type() {
	case 0:
		return typeRegular
	case fs.ModeDir:
		return typeDirectory
	case fs.ModeSymlink:
		return typeLink
	}
	return typeUnknown
}

// fileStatSize is the size of a file's description in bytes.
const fileStatSize = 64

// writeStat describes the file with that name below "/". Guests must not learn the host's device and file numbers. But libraries compare them, so
// they are derived from the name.
func writeStat(c *hostcall.Call, ptr uint64, name string, info fs.FileInfo) {
	var stat [fileStatSize]byte
	binary.LittleEndian.PutUint64(stat[0:], 1)
	binary.LittleEndian.PutUint64(stat[8:], number(name))
	stat[16] = fileType(info.Mode())
	binary.LittleEndian.PutUint64(stat[24:], 1) // links
	if stat[16] == typeRegular {
		binary.LittleEndian.PutUint64(stat[32:], uint64(max(0, info.Size())))
	}
	modified := uint64(0)
	if t := info.ModTime(); !t.IsZero() && t.Unix() > 0 {
		modified = uint64(t.UnixNano())
	}
	for at := 40; at < fileStatSize; at += 8 {
		binary.LittleEndian.PutUint64(stat[at:], modified)
	}
	c.Write(ptr, stat[:])
}

// number returns a number for the file with that name below "/". It is not 0.
func number(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64() | 1<<63
}

// maxPiece is how many bytes of a file are read at a time; the guest must ask for the rest.
const maxPiece = 64 << 10

// read reads from offset into a list of buffers, at most maxPiece bytes.
func (d *descriptor) read(c *hostcall.Call, list, count uint64, offset int64) (n int, errno uint64) {
	switch {
	case d.dir:
		return 0, errnoIsDir
	case uint32(count) > maxVectors:
		return 0, errnoInval
	}
	vectors := c.Read(list, uint64(uint32(count))*8) // copied, because the guest may let the read overwrite its list of buffers
	c.Charge(costRead + costVector*int(uint32(count)))
	want := uint64(0)
	for rest := vectors; len(rest) > 0; rest = rest[8:] {
		ptr, length := vector(rest)
		c.View(ptr, length)
		want = min(want+length, maxPiece)
	}
	if want == 0 || offset > math.MaxInt64-maxPiece {
		return 0, errnoSuccess
	}
	from, ok := d.file.(io.ReaderAt)
	if !ok {
		return 0, errnoNotSup
	}
	p := current(c)
	if more := int64(want) - int64(cap(p.piece)); more > 0 {
		c.Hold(more)
		p.piece = make([]byte, want)
	}
	begun := time.Now()
	n, err := from.ReadAt(p.piece[:want], offset)
	d.sum += int64(n)
	d.took += time.Since(begun)
	if n == 0 && err != nil && !errors.Is(err, io.EOF) {
		return 0, errnoOf(err)
	}
	for rest := p.piece[:n]; len(rest) > 0; vectors = vectors[8:] {
		ptr, length := vector(vectors)
		part := rest[:min(uint64(len(rest)), length)]
		c.Write(ptr, part)
		rest = rest[len(part):]
	}
	return n, errnoSuccess
}

func fdPRead(c *hostcall.Call, stack []uint64) {
	if uint32(stack[0]) < rootFD {
		stack[0] = errnoPipe
		return
	}
	d := opened(c, stack[0])
	if d == nil {
		stack[0] = errnoBadF
		return
	}
	n, errno := 0, uint64(errnoInval)
	if stack[3] <= math.MaxInt64 {
		n, errno = d.read(c, stack[1], stack[2], int64(stack[3]))
	}
	if errno == errnoSuccess {
		c.WriteUint32(stack[4], uint32(n))
	}
	stack[0] = errno
}

// The origins from which fd_seek counts.
const (
	seekStart   = 0
	seekCurrent = 1
	seekEnd     = 2
)

func fdSeek(c *hostcall.Call, stack []uint64) {
	errno := seek(c, stack[0], int64(stack[1]), uint32(stack[2]))
	if errno == errnoSuccess {
		c.WriteUint64(stack[3], uint64(opened(c, stack[0]).offset))
	}
	stack[0] = errno
}

func fdTell(c *hostcall.Call, stack []uint64) {
	errno := seek(c, stack[0], 0, seekCurrent)
	if errno == errnoSuccess {
		c.WriteUint64(stack[1], uint64(opened(c, stack[0]).offset))
	}
	stack[0] = errno
}

// seek sets where the next read begins. That may be beyond the end of the file.
func seek(c *hostcall.Call, fd uint64, by int64, whence uint32) (errno uint64) {
	if uint32(fd) < rootFD {
		return errnoPipe
	}
	d := opened(c, fd)
	switch {
	case d == nil:
		return errnoBadF
	case d.dir:
		return errnoIsDir
	}
	from := int64(0)
	switch whence {
	case seekStart:
	case seekCurrent:
		from = d.offset
	case seekEnd:
		c.Charge(costRead)
		info, err := d.file.Stat()
		if err != nil {
			return errnoOf(err)
		}
		from = info.Size()
	default:
		return errnoInval
	}
	if by < 0 && from+by < 0 || by > 0 && from > math.MaxInt64-by {
		return errnoInval
	}
	d.offset = from + by
	return errnoSuccess
}

// fdClose closes a file. The three streams stay open.
func fdClose(c *hostcall.Call, stack []uint64) {
	if uint32(stack[0]) < rootFD {
		stack[0] = errnoSuccess
		return
	}
	d := opened(c, stack[0])
	if d == nil {
		stack[0] = errnoBadF
		return
	}
	d.close(c)
	current(c).open[uint32(stack[0])-rootFD] = nil
	stack[0] = errnoSuccess
}

// preopen reports whether a descriptor was open from the beginning.
func preopen(c *hostcall.Call, fd uint64) bool {
	d := opened(c, fd)
	return d != nil && d.preopen
}

func prestat(c *hostcall.Call, stack []uint64) {
	if !preopen(c, stack[0]) {
		stack[0] = errnoBadF
		return
	}
	c.WriteUint64(stack[1], uint64(len(rootName))<<32) // 0 is the tag of a directory
	stack[0] = errnoSuccess
}

func prestatName(c *hostcall.Call, stack []uint64) {
	switch {
	case !preopen(c, stack[0]):
		stack[0] = errnoBadF
	case uint32(stack[2]) < uint32(len(rootName)):
		stack[0] = errnoNameTooLong
	default:
		c.Write(stack[1], []byte(rootName))
		stack[0] = errnoSuccess
	}
}
