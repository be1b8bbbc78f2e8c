package wasi

import (
	"encoding/binary"
	"io/fs"

	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
)

// The rights of descriptors. They restrict nothing here: what is refused depends on the kind of file.
const (
	rightRead     = 1 << 1
	rightSeek     = 1 << 2
	rightSetFlags = 1 << 3
	rightTell     = 1 << 5
	rightWrite    = 1 << 6
	rightAdvise   = 1 << 7
	rightOpen     = 1 << 13
	rightReadDir  = 1 << 14
	rightReadLink = 1 << 15
	rightPathStat = 1 << 18
	rightStat     = 1 << 21
	rightPoll     = 1 << 27
	rightsFile    = rightRead | rightSeek | rightSetFlags | rightTell | rightAdvise | rightStat | rightPoll
	rightsDir     = rightSetFlags | rightOpen | rightReadDir | rightReadLink | rightPathStat | rightStat
	// C libraries request no more rights than a directory passes on. Here a directory also passes on the right to write, so that a guest that wants to
	// write asks for it, and is refused.
	rightsPassedOn = rightsFile | rightsDir | rightWrite
)

// fdStat gives the three streams the type unknown, as WASI does for a pipe: for a terminal, libraries would flush every line.
func fdStat(c *hostcall.Call, stack []uint64) {
	var stat [24]byte
	var rights, passedOn uint64
	d := opened(c, stack[0])
	switch fd := uint32(stack[0]); {
	case fd == 0:
		rights = rightRead | rightSetFlags | rightStat | rightPoll
	case fd < rootFD:
		rights = rightWrite | rightSetFlags | rightStat | rightPoll
	case d == nil:
		stack[0] = errnoBadF
		return
	case d.dir:
		stat[0], rights, passedOn = typeDirectory, rightsDir, rightsPassedOn
	default:
		stat[0], rights = typeRegular, rightsFile
	}
	binary.LittleEndian.PutUint64(stat[8:], rights)
	binary.LittleEndian.PutUint64(stat[16:], passedOn)
	c.Write(stack[1], stat[:])
	stack[0] = errnoSuccess
}

func fileStat(c *hostcall.Call, stack []uint64) {
	if uint32(stack[0]) < rootFD {
		var stat [fileStatSize]byte
		binary.LittleEndian.PutUint64(stat[24:], 1) // one link
		c.Write(stack[1], stat[:])
		stack[0] = errnoSuccess
		return
	}
	d := opened(c, stack[0])
	if d == nil {
		stack[0] = errnoBadF
		return
	}
	var info fs.FileInfo = rootInfo{}
	if d.file != nil {
		c.Charge(costRead)
		var err error
		if info, err = d.file.Stat(); err != nil {
			stack[0] = errnoOf(err)
			return
		}
	}
	writeStat(c, stack[1], d.name, info)
	stack[0] = errnoSuccess
}

// maxVectors is the most buffers in one read or write, called IOV_MAX elsewhere.
const maxVectors = 1024

// fdRead gives a plain WASI program its input, and a reactor nothing. A read of a file begins where the previous read ended.
func fdRead(c *hostcall.Call, stack []uint64) {
	if uint32(stack[0]) == 0 {
		stack[0] = readInput(c, stack)
		return
	}
	d := opened(c, stack[0])
	if d == nil {
		stack[0] = errnoBadF
		return
	}
	n, errno := d.read(c, stack[1], stack[2], d.offset)
	if errno == errnoSuccess {
		d.offset += int64(n)
		c.WriteUint32(stack[3], uint32(n))
	}
	stack[0] = errno
}

func readInput(c *hostcall.Call, stack []uint64) (errno uint64) {
	if uint32(stack[2]) > maxVectors {
		return errnoInval
	}
	c.Charge(costVector * int(uint32(stack[2])))
	total := 0
	for vectors := c.View(stack[1], uint64(uint32(stack[2]))*8); len(vectors) > 0 && c.Command(); vectors = vectors[8:] {
		ptr, length := vector(vectors)
		total += c.ReadInput(ptr, length)
	}
	c.WriteUint32(stack[3], uint32(total))
	return errnoSuccess
}

// fdWrite takes a plain WASI program's output from descriptor 1. Anything else becomes log lines, at most maxChunk bytes at a time; the guest then
// writes the rest.
func fdWrite(c *hostcall.Call, stack []uint64) {
	fd := uint32(stack[0])
	if fd != 1 && fd != 2 {
		stack[0] = errnoBadF
		return
	}
	if uint32(stack[2]) > maxVectors {
		stack[0] = errnoInval
		return
	}
	c.Charge(costVector * int(uint32(stack[2])))
	total := 0
	for vectors := c.View(stack[1], uint64(uint32(stack[2]))*8); len(vectors) > 0; vectors = vectors[8:] {
		ptr, length := vector(vectors)
		piece := c.View(ptr, length)
		if fd == 1 && c.Command() {
			c.AppendOutput(piece)
			total += len(piece)
			continue
		}
		piece = piece[:min(len(piece), maxChunk-total)]
		c.Charge(costStream * len(piece))
		said(c, fd, piece)
		total += len(piece)
		if total == maxChunk {
			break
		}
	}
	c.WriteUint32(stack[3], uint32(total))
	stack[0] = errnoSuccess
}

// vector reads the first of a list of buffers.
func vector(list []byte) (ptr, length uint64) {
	return uint64(binary.LittleEndian.Uint32(list)), uint64(binary.LittleEndian.Uint32(list[4:]))
}
