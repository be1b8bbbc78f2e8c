package instrument_test

import "encoding/binary"

// The kinds of values.
const (
	kindI32 = iota
	kindI64
	kindF32
	kindF64
	kindVector
	kinds
)

var kindTypes = [kinds]byte{0x7f, 0x7e, 0x7d, 0x7c, 0x7b}

// A numeric is code that computes a value from others, and never traps.
type numeric struct {
	code   string
	takes  []int
	result int
}

// numerics are the instructions on numbers and vectors. Those that might trap get operands with which they don't.
func numerics() (all []numeric) {
	const i, l, f, d, v = kindI32, kindI64, kindF32, kindF64, kindVector
	add := func(from, to byte, result int, takes ...int) {
		for op := int(from); op <= int(to); op++ {
			all = append(all, numeric{string([]byte{byte(op)}), takes, result})
		}
	}
	add(0x45, 0x45, i, i)
	add(0x46, 0x4f, i, i, i)
	add(0x50, 0x50, i, l)
	add(0x51, 0x5a, i, l, l)
	add(0x5b, 0x60, i, f, f)
	add(0x61, 0x66, i, d, d)
	add(0x67, 0x69, i, i)
	add(0x6a, 0x6c, i, i, i)
	add(0x71, 0x78, i, i, i)
	add(0x79, 0x7b, l, l)
	add(0x7c, 0x7e, l, l, l)
	add(0x83, 0x8a, l, l, l)
	add(0x8b, 0x91, f, f)
	add(0x92, 0x98, f, f, f)
	add(0x99, 0x9f, d, d)
	add(0xa0, 0xa6, d, d, d)
	add(0xa7, 0xa7, i, l)
	add(0xac, 0xad, l, i)
	add(0xb2, 0xb3, f, i)
	add(0xb4, 0xb5, f, l)
	add(0xb6, 0xb6, f, d)
	add(0xb7, 0xb8, d, i)
	add(0xb9, 0xba, d, l)
	add(0xbb, 0xbb, d, f)
	add(0xbc, 0xbc, i, f)
	add(0xbd, 0xbd, l, d)
	add(0xbe, 0xbe, f, i)
	add(0xbf, 0xbf, d, l)
	add(0xc0, 0xc1, i, i)
	add(0xc2, 0xc4, l, l)
	for sub, kind := range [][2]int{{i, f}, {i, f}, {i, d}, {i, d}, {l, f}, {l, f}, {l, d}, {l, d}} {
		all = append(all, numeric{"\xfc" + string(rune(sub)), []int{kind[1]}, kind[0]})
	}
	for op := range byte(4) {
		all = append(all,
			numeric{"\x41\xfd\xff\x03\x71\x41\x03\x72" + string([]byte{0x6d + op}), []int{i, i}, i}, // divided by 3 or more
			numeric{"\x42\xfd\xff\x03\x83\x42\x03\x84" + string([]byte{0x7f + op}), []int{l, l}, l},
			numeric{"\x41\xff\xff\x03\x71\xb2" + string([]byte{0xa8 + op&1}), []int{i}, i}, // of small numbers
			numeric{"\x41\xff\xff\x03\x71\xb7" + string([]byte{0xaa + op&1}), []int{i}, i},
			numeric{"\x41\xff\xff\x03\x71\xb2" + string([]byte{0xae + op&1}), []int{i}, l},
			numeric{"\x41\xff\xff\x03\x71\xb7" + string([]byte{0xb0 + op&1}), []int{i}, l})
	}
	vectors := func(result int, takes []int, ranges ...int) {
		for n := 0; n < len(ranges); n += 2 {
			for sub := ranges[n]; sub <= ranges[n+1]; sub++ {
				all = append(all, numeric{string(binary.AppendUvarint([]byte{0xfd}, uint64(sub))), takes, result})
			}
		}
	}
	vectors(v, []int{v, v}, 14, 14, 35, 76, 78, 81, 101, 102, 110, 115, 118, 121, 123, 123, 130, 130, 133, 134, 142, 147, 149, 153, 155, 159,
		174, 174, 177, 177, 181, 186, 188, 191, 206, 206, 209, 209, 213, 223, 228, 235, 240, 247)
	vectors(v, []int{v}, 77, 77, 94, 98, 103, 106, 116, 117, 122, 122, 124, 129, 135, 138, 148, 148, 160, 161, 167, 170, 192, 193, 199, 202,
		224, 225, 227, 227, 236, 237, 239, 239, 248, 255)
	vectors(v, []int{v, i}, 107, 109, 139, 141, 171, 173, 203, 205)
	vectors(i, []int{v}, 83, 83, 99, 100, 131, 132, 163, 164, 195, 196)
	vectors(v, []int{i}, 15, 17)
	vectors(v, []int{l}, 18, 18)
	vectors(v, []int{f}, 19, 19)
	vectors(v, []int{d}, 20, 20)
	vectors(v, []int{v, v, v}, 82, 82)
	all = append(all, numeric{"\xfd\x0d" + "\x00\x11\x02\x13\x04\x15\x06\x17\x08\x19\x0a\x1b\x0c\x1d\x0e\x1f", []int{v, v}, v})
	for n, sub := range []byte{21, 22, 24, 25, 27, 29, 31, 33} { // lanes
		all = append(all, numeric{string([]byte{0xfd, sub, 1}), []int{v}, []int{i, i, i, i, i, l, f, d}[n]})
	}
	for n, sub := range []byte{23, 26, 28, 30, 32, 34} {
		all = append(all, numeric{string([]byte{0xfd, sub, 1}), []int{v, []int{i, i, i, l, f, d}[n]}, v})
	}
	return all
}
