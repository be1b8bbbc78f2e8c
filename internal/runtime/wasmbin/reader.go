package wasmbin

import (
	"fmt"
	"unicode/utf8"
)

// A Reader reads part of a module. It keeps its first error. From then on every read returns zero at once, so callers need to check Err only at the
// end and in loops.
type Reader struct {
	Data    []byte
	Pos     int    // offset in Data of the next byte
	End     int    // no byte at or after it is read
	Section string // the name of the place, for errors
	Err     error
}

// Left returns the number of bytes that can still be read: 0 after an error.
func (r *Reader) Left() int {
	if r.Err != nil {
		return 0
	}
	return r.End - r.Pos
}

// Fail records an error about the byte at offset at, unless there is one already.
func (r *Reader) Fail(at int, format string, args ...any) {
	if r.Err != nil {
		return
	}
	place := fmt.Sprintf("offset %#x", at)
	if r.Section != "" {
		place = r.Section + " section, " + place
	}
	r.Err = fmt.Errorf("wasm: %s: "+format, append([]any{place}, args...)...)
}

// Byte reads one byte.
func (r *Reader) Byte(what string) byte {
	if r.Left() < 1 {
		r.Fail(r.Pos, "%s is cut off", what)
		return 0
	}
	b := r.Data[r.Pos]
	r.Pos++
	return b
}

// Bytes reads n bytes. The result shares the module's memory.
func (r *Reader) Bytes(n int, what string) []byte {
	if n < 0 || r.Left() < n {
		r.Fail(r.Pos, "%s of %d bytes is cut off after %d", what, n, r.Left())
		return nil
	}
	b := r.Data[r.Pos : r.Pos+n : r.Pos+n]
	r.Pos += n
	return b
}

// leb reads an unsigned LEB128 number of at most width bits, or says what is wrong with it. As in the specification, a
// number may be padded to the length of the largest one.
func (r *Reader) leb(width int) (value uint64, problem string) {
	for shift := 0; shift < width; shift += 7 {
		if r.Left() < 1 {
			return 0, "is cut off"
		}
		b := r.Data[r.Pos]
		r.Pos++
		if rest := width - shift; rest < 7 && b&0x7f>>rest != 0 {
			return 0, "overflows its type"
		}
		value |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return value, ""
		}
	}
	return 0, "has more bytes than its type allows"
}

// unsigned reads an unsigned number of at most width bits.
func (r *Reader) unsigned(width int, what string) uint64 {
	start := r.Pos
	value, problem := r.leb(width)
	if problem != "" {
		r.Fail(start, "%s %s", what, problem)
	}
	return value
}

// U32 reads an unsigned number of 32 bits.
func (r *Reader) U32(what string) uint32 {
	if r.Err == nil && r.Pos < r.End && r.Data[r.Pos] < 0x80 { // nearly all numbers
		r.Pos++
		return uint32(r.Data[r.Pos-1])
	}
	return uint32(r.unsigned(32, what))
}

// skipSigned skips a signed LEB128 number of at most width bits. Nothing here needs its value, so the compiler checks the bits beyond the width.
func (r *Reader) skipSigned(width int, what string) {
	start := r.Pos
	for shift := 0; shift < width; shift += 7 {
		if r.Byte(what) < 0x80 {
			return
		}
	}
	r.Fail(start, "%s has more bytes than its type allows", what)
}

// s32 reads a signed number of 32 bits.
func (r *Reader) s32() uint32 {
	start := r.Pos
	value := uint32(0)
	for shift := 0; shift < 35; shift += 7 {
		b := r.Byte("an i32 constant")
		value |= uint32(b&0x7f) << shift
		if b < 0x80 {
			if shift < 28 && b&0x40 != 0 {
				value |= ^uint32(0) << (shift + 7)
			}
			return value
		}
	}
	r.Fail(start, "an i32 constant has more bytes than its type allows")
	return 0
}

// count reads the length of a vector. Each element takes at least one byte. So the remaining bytes bound the length, and thereby what is allocated.
func (r *Reader) count(limit int, what string) int {
	start := r.Pos
	value, problem := r.leb(32)
	n := int64(value)
	switch {
	case problem != "":
		r.Fail(start, "the number of %s %s", what, problem)
	case n > int64(r.Left()):
		r.Fail(start, "%d %s do not fit into the %d bytes that are left", n, what, r.Left())
	case n > int64(limit):
		r.Fail(start, "%d %s are %w: the limit is %d", n, what, ErrUnsupported, limit)
	}
	if r.Err != nil {
		return 0
	}
	return int(n)
}

// Name reads a length and a name of that length in UTF-8. The result shares the module's memory.
func (r *Reader) Name(what string) []byte {
	start := r.Pos
	b := r.Bytes(int(r.U32(what)), what)
	if !utf8.Valid(b) {
		r.Fail(start, "%s is not UTF-8", what)
		return nil
	}
	return b
}

// AppendU32 appends n in the fewest bytes of LEB128.
func AppendU32(b []byte, n uint32) []byte {
	for n >= 0x80 {
		b = append(b, byte(n)|0x80)
		n >>= 7
	}
	return append(b, byte(n))
}

// AppendS32 appends n in the fewest bytes of signed LEB128.
func AppendS32(b []byte, n int32) []byte { return AppendS64(b, int64(n)) }

// AppendS64 appends n in the fewest bytes of signed LEB128.
func AppendS64(b []byte, n int64) []byte {
	for n < -0x40 || n >= 0x40 {
		b = append(b, byte(n)|0x80)
		n >>= 7
	}
	return append(b, byte(n)&0x7f)
}

// AppendName appends the length of a name, and the name.
func AppendName(b []byte, name string) []byte {
	return append(AppendU32(b, uint32(len(name))), name...)
}
