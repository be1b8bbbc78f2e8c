package wasi

import (
	"encoding/binary"

	"github.com/toolsrv/toolsrv/runtime/hostabi"
)

// The rights that stdin, stdout and stderr have.
const (
	rightRead     = 1 << 1
	rightSetFlags = 1 << 3
	rightWrite    = 1 << 6
	rightStat     = 1 << 21
	rightPoll     = 1 << 27
)

// fdStat describes a descriptor as of unknown type, which is what WASI calls a pipe: a terminal would have
// libraries flush every line.
func fdStat(c *hostabi.Call, stack []uint64) {
	fd := uint32(stack[0])
	if fd > 2 {
		stack[0] = errnoBadF
		return
	}
	rights := uint64(rightSetFlags | rightStat | rightPoll)
	if fd == 0 {
		rights |= rightRead
	} else {
		rights |= rightWrite
	}
	var stat [24]byte
	binary.LittleEndian.PutUint64(stat[8:], rights)
	c.Write(stack[1], stat[:])
	stack[0] = errnoSuccess
}

func fileStat(c *hostabi.Call, stack []uint64) {
	if uint32(stack[0]) > 2 {
		stack[0] = errnoBadF
		return
	}
	var stat [64]byte
	binary.LittleEndian.PutUint64(stat[24:], 1) // one link
	c.Write(stack[1], stat[:])
	stack[0] = errnoSuccess
}

// maxVectors is the most buffers in one read or write (IOV_MAX elsewhere).
const maxVectors = 1024

// fdRead gives a plain WASI program its input, and a reactor nothing.
func fdRead(c *hostabi.Call, stack []uint64) {
	if fd := uint32(stack[0]); fd != 0 {
		stack[0] = errnoBadF
		return
	}
	if uint32(stack[2]) > maxVectors {
		stack[0] = errnoInval
		return
	}
	c.Charge(costVector * int(uint32(stack[2])))
	total := 0
	for vectors := c.View(stack[1], uint64(uint32(stack[2]))*8); len(vectors) > 0 && c.Command(); vectors = vectors[8:] {
		ptr, length := vector(vectors)
		total += c.ReadInput(ptr, length)
	}
	c.WriteUint32(stack[3], uint32(total))
	stack[0] = errnoSuccess
}

// fdWrite takes a plain WASI program's output from descriptor 1, and log lines otherwise. Of log lines it takes
// maxChunk bytes at a time; the guest comes back with the rest.
func fdWrite(c *hostabi.Call, stack []uint64) {
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
