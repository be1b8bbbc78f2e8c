package wasmbin

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// ErrUnsupported is in the chain of an error of Parse where the module may be valid, but uses a proposal that is not
// taken here, or is larger than any compiler makes one.
var ErrUnsupported = errors.New("not supported")

// A reader walks through part of a module. Its first error sticks: from then on every read returns zero at once, so
// callers check err at the end and in loops only.
type reader struct {
	data    []byte
	pos     int    // offset in data of the next byte
	end     int    // no byte at or after it is read
	section string // for errors
	err     error
}

// left is the number of bytes that can still be read, 0 after an error.
func (r *reader) left() int {
	if r.err != nil {
		return 0
	}
	return r.end - r.pos
}

// fail keeps the first error, with the place of the byte at offset at.
func (r *reader) fail(at int, format string, args ...any) {
	if r.err != nil {
		return
	}
	place := fmt.Sprintf("offset %#x", at)
	if r.section != "" {
		place = r.section + " section, " + place
	}
	r.err = fmt.Errorf("wasm: %s: "+format, append([]any{place}, args...)...)
}

// byte reads one byte.
func (r *reader) byte(what string) byte {
	if r.left() < 1 {
		r.fail(r.pos, "%s is cut off", what)
		return 0
	}
	b := r.data[r.pos]
	r.pos++
	return b
}

// bytes reads n bytes. The result shares the module's memory.
func (r *reader) bytes(n int, what string) []byte {
	if n < 0 || r.left() < n {
		r.fail(r.pos, "%s of %d bytes is cut off after %d", what, n, r.left())
		return nil
	}
	b := r.data[r.pos : r.pos+n : r.pos+n]
	r.pos += n
	return b
}

// leb reads an unsigned LEB128 number of at most width bits, or says what is wrong with it. Padding is allowed as the
// specification has it, up to the bytes that the largest number takes.
func (r *reader) leb(width int) (value uint64, problem string) {
	for shift := 0; shift < width; shift += 7 {
		if r.left() < 1 {
			return 0, "is cut off"
		}
		b := r.data[r.pos]
		r.pos++
		if rest := width - shift; rest < 7 && b&0x7f>>rest != 0 {
			return 0, "overflows its bits"
		}
		value |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return value, ""
		}
	}
	return 0, "is longer than its largest value"
}

// unsigned reads an unsigned number of at most width bits.
func (r *reader) unsigned(width int, what string) uint64 {
	start := r.pos
	value, problem := r.leb(width)
	if problem != "" {
		r.fail(start, "%s %s", what, problem)
	}
	return value
}

// u32 reads an unsigned number of 32 bits.
func (r *reader) u32(what string) uint32 { return uint32(r.unsigned(32, what)) }

// skipSigned passes over a signed LEB128 number of at most width bits. Nothing here needs its value, so the bits
// beyond the width are left to the compiler's check.
func (r *reader) skipSigned(width int, what string) {
	start := r.pos
	for shift := 0; shift < width; shift += 7 {
		if r.byte(what) < 0x80 {
			return
		}
	}
	r.fail(start, "%s is longer than its largest value", what)
}

// count reads the length of a vector. Each element takes a byte at least, so what is not there is never allocated.
func (r *reader) count(limit int, what string) int {
	start := r.pos
	value, problem := r.leb(32)
	n := int64(value)
	switch {
	case problem != "":
		r.fail(start, "the number of %s %s", what, problem)
	case n > int64(r.left()):
		r.fail(start, "%d %s do not fit into the %d bytes that are left", n, what, r.left())
	case n > int64(limit):
		r.fail(start, "%d %s are %w: the most are %d", n, what, ErrUnsupported, limit)
	}
	if r.err != nil {
		return 0
	}
	return int(n)
}

// name reads a length and that much UTF-8. The result shares the module's memory.
func (r *reader) name(what string) []byte {
	start := r.pos
	b := r.bytes(int(r.u32(what)), what)
	if !utf8.Valid(b) {
		r.fail(start, "%s is not UTF-8", what)
		return nil
	}
	return b
}

// appendU32 appends n in the fewest bytes of LEB128.
func appendU32(b []byte, n uint32) []byte {
	for n >= 0x80 {
		b = append(b, byte(n)|0x80)
		n >>= 7
	}
	return append(b, byte(n))
}

// appendS32 appends n in the fewest bytes of signed LEB128.
func appendS32(b []byte, n int32) []byte { return appendS64(b, int64(n)) }

// appendS64 appends n in the fewest bytes of signed LEB128.
func appendS64(b []byte, n int64) []byte {
	for n < -0x40 || n >= 0x40 {
		b = append(b, byte(n)|0x80)
		n >>= 7
	}
	return append(b, byte(n)&0x7f)
}

// appendName appends the length of a name, and the name.
func appendName(b []byte, name string) []byte {
	return append(appendU32(b, uint32(len(name))), name...)
}
