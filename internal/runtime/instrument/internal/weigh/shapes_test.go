package weigh_test

// A shape makes a module that is hard on a compiler, with n values and m branches, or whatever its name says.
type shape struct {
	name string
	make func(n, m int) []byte
}

// sources push n values, which stay alive until drain replaces them by one.
var sources = []struct {
	name  string
	plan  func(n int) plan
	fill  func(c *code, n int)
	drain func(c *code, n int)
}{
	{"loads", nil, func(c *code, n int) {
		for i := range n {
			c.load(i)
		}
	}, (*code).fold},
	{"addresses", nil, func(c *code, n int) {
		c.get(0)
		c.b = append(c.b, 0x28, 2, 0)
		for range n - 1 {
			c.op(0x22, 1, 0x20, 1, 0x28, 2, 0)
		}
	}, (*code).fold},
	{"constants", nil, func(c *code, n int) {
		for i := range n {
			c.i32(i)
		}
	}, (*code).fold},
	{"calls", nil, func(c *code, n int) {
		for range wide {
			c.get(0)
		}
		for i := 0; i < n; i += wide {
			c.index(0x10, functionWide)
			for range wide {
				c.get(0)
			}
		}
	}, func(c *code, n int) { c.fold((n+wide-1)/wide*wide + wide) }},
	{"locals", func(n int) plan { return plan{locals: n + 2} }, func(c *code, n int) {
		for i := range n {
			c.load(i)
			c.set(i + 1)
		}
	}, func(c *code, n int) {
		for i := range n {
			c.get(i + 1)
		}
		c.fold(n)
	}},
	{"vectors", nil, func(c *code, n int) {
		for i := range n {
			c.vector(i)
		}
	}, func(c *code, n int) {
		for range n - 1 {
			c.op(0xfd, 81)
		}
		c.op(0xfd, 27, 0)
	}},
}

// ways are kinds of m branches.
var ways = []struct {
	name string
	make func(c *code, m int)
}{
	{"empty ifs", func(c *code, m int) {
		for range m {
			c.op(0x20, 0, 0x04, 0x40, 0x0b)
		}
	}},
	{"exits", func(c *code, m int) { // of one block
		c.op(0x02, 0x40)
		for range m {
			c.op(0x20, 0, 0x0d, 0)
		}
		c.op(0x0b)
	}},
	{"blocks", func(c *code, m int) {
		for range m {
			c.op(0x02, 0x40, 0x20, 0, 0x0d, 0, 0x0b)
		}
	}},
	{"loops", func(c *code, m int) {
		for range m {
			c.op(0x03, 0x40, 0x20, 0, 0x0d, 0, 0x0b)
		}
	}},
	{"loops with calls", func(c *code, m int) {
		for range m {
			c.op(0x03, 0x40, 0x10, functionNone, 0x20, 0, 0x0d, 0, 0x0b)
		}
	}},
	{"nested loops", func(c *code, m int) {
		for range m {
			c.op(0x03, 0x40)
		}
		c.op(0x10, functionNone)
		for range m {
			c.op(0x20, 0, 0x0d, 0, 0x0b)
		}
	}},
	{"nested ifs", func(c *code, m int) {
		for range m {
			c.op(0x20, 0, 0x04, 0x40)
		}
		for range m {
			c.op(0x0b)
		}
	}},
	{"calls", func(c *code, m int) {
		for range m {
			c.op(0x10, functionNone)
		}
	}},
	{"fills", func(c *code, m int) { // too short to be changed
		for range m {
			c.op(0x20, 0, 0x20, 0, 0x41, 8, 0xfc, 0x0b, 0)
		}
	}},
	{"table fills", func(c *code, m int) {
		for range m {
			c.op(0x20, 0, 0xd0, 0x70, 0x41, 8, 0xfc, 0x11, 0)
		}
	}},
	{"copies", func(c *code, m int) {
		for range m {
			c.op(0x20, 0, 0x20, 0, 0x41, 8, 0xfc, 0x0a, 0, 0)
		}
	}},
	{"table copies", func(c *code, m int) {
		for range m {
			c.op(0x20, 0, 0x20, 0, 0x41, 8, 0xfc, 0x0e, 0, 0)
		}
	}},
	{"table to one", func(c *code, m int) {
		c.op(0x02, 0x40, 0x20, 0)
		c.index(0x0e, m)
		for range m + 1 {
			c.op(0)
		}
		c.op(0x0b)
	}},
	{"switch", func(c *code, m int) { // in a loop, as interpreters are
		c.op(0x03, 0x40)
		for range m + 1 {
			c.op(0x02, 0x40)
		}
		c.get(0)
		c.index(0x0e, m)
		for i := range m + 1 {
			c.b = number(c.b, i)
		}
		for i := range m + 1 {
			c.op(0x0b)
			c.load(i)
			c.set(0)
			if i < m {
				c.index(0x0c, m-i)
			}
		}
		c.op(0x0b)
	}},
}

// joins are shapes in which values come from several places, and shapes that are not products of those above.
var joins = []shape{
	{"n locals set in m ifs", func(n, m int) []byte {
		var c code
		for range m {
			c.op(0x20, 0, 0x04, 0x40)
			for i := range n {
				c.load(i)
				c.set(i + 1)
			}
			c.op(0x0b)
		}
		return plan{locals: n}.module(reads(c, n))
	}},
	{"n locals set before one of m exits", func(n, m int) []byte {
		var c code
		c.op(0x02, 0x40)
		for i := range m {
			c.op(0x20, 0, 0x0d, 0)
			c.load(i)
			c.set(i%n + 1)
		}
		c.op(0x0b)
		return plan{locals: n}.module(reads(c, n))
	}},
	{"n locals set before the last of m exits", func(n, m int) []byte {
		var c code
		c.op(0x02, 0x40)
		for range m {
			c.op(0x20, 0, 0x0d, 0)
		}
		for i := range n {
			c.load(i)
			c.set(i + 1)
		}
		c.op(0x0b)
		return plan{locals: n}.module(reads(c, n))
	}},
	{"n locals read in a loop with m ways back", func(n, m int) []byte {
		var c code
		c.op(0x03, 0x40)
		for i := range n {
			c.get(i + 1)
			c.load(i)
			c.op(0x6a)
			c.set(i + 1)
		}
		for range m {
			c.op(0x20, 0, 0x0d, 0)
		}
		c.op(0x0b)
		return plan{locals: n}.module(reads(c, n))
	}},
	{"n locals read in m nested loops", func(n, m int) []byte {
		var c code
		for range m {
			c.op(0x03, 0x40)
		}
		for i := range n {
			c.get(i + 1)
			c.op(0x20, 0, 0x36, 2, 0)
		}
		for range m {
			c.op(0x20, 0, 0x0d, 0, 0x0b)
		}
		return plan{locals: n}.module(reads(c, n))
	}},
	{"n locals read in each of m loops", func(n, m int) []byte {
		var c code
		for range m {
			c.op(0x03, 0x40)
			for i := range n {
				c.get(i + 1)
				c.load(i)
				c.op(0x6a)
				c.set(i + 1)
			}
			c.op(0x10, functionNone, 0x20, 0, 0x0d, 0, 0x0b)
		}
		return plan{locals: n}.module(reads(c, n))
	}},
	{"n values of each of m loops", func(n, m int) []byte {
		var c code
		for range m {
			for i := range n {
				c.load(i)
			}
			c.op(0x03, 0x40, 0x10, functionNone, 0x20, 0, 0x0d, 0, 0x0b)
			c.fold(n)
			c.op(0x20, 0, 0x6a, 0x21, 0)
		}
		return plan{}.module(reads(c, 0))
	}},
	{"n locals read behind each of m exits", func(n, m int) []byte {
		var c code
		c.op(0x02, 0x40)
		for i := range m {
			c.op(0x20, 0, 0x0d, 0)
			c.get(i%n + 1)
			c.op(0x20, 0, 0x6a, 0x21, 0)
		}
		c.op(0x0b)
		return plan{locals: n}.module(reads(c, n))
	}},
	{"n locals read behind each of m ifs", func(n, m int) []byte {
		var c code
		for i := range m {
			c.op(0x20, 0, 0x04, 0x40, 0x0b)
			c.get(i%n + 1)
			c.op(0x20, 0, 0x6a, 0x21, 0)
		}
		return plan{locals: n}.module(reads(c, n))
	}},
	{"n addresses checked behind each of m exits", func(n, m int) []byte {
		var c code
		c.op(0x02, 0x40)
		for i := range m {
			for range n {
				c.load(i)
				c.set(0)
			}
			c.op(0x20, 0, 0x0d, 0)
		}
		c.op(0x0b)
		return plan{}.module(reads(c, 0))
	}},
	{"m blocks of wide results", func(_, m int) []byte {
		var c code
		for range m {
			c.op(0x02, typeBlock)
			for i := range wide {
				c.load(i)
			}
			c.op(0x20, 0, 0x0d, 0, 0x0b)
			c.fold(wide)
			c.op(0x21, 0)
		}
		return plan{}.module(reads(c, 0))
	}},
	{"m exits with wide results", func(_, m int) []byte {
		var c code
		c.op(0x02, typeBlock)
		for i := range wide {
			c.load(i)
		}
		for range m {
			c.op(0x20, 0, 0x0d, 0)
		}
		c.op(0x0b)
		c.fold(wide)
		c.op(0x21, 0)
		return plan{}.module(reads(c, 0))
	}},
	{"m targets with wide results", func(_, m int) []byte {
		var c code
		c.op(0x02, typeBlock)
		for i := range wide {
			c.load(i)
		}
		c.get(0)
		c.index(0x0e, m)
		for range m + 1 {
			c.op(0)
		}
		c.op(0x0b)
		c.fold(wide)
		c.op(0x21, 0)
		return plan{}.module(reads(c, 0))
	}},
	{"m calls with n globals", func(n, m int) []byte {
		var c code
		for range m {
			c.op(0x10, functionNone)
		}
		return plan{globals: n}.module(reads(c, 0))
	}},
	{"m calls of the last of n imports", func(n, m int) []byte {
		var c code
		for range m {
			c.index(0x10, n-1)
		}
		return plan{imports: n}.module(reads(c, 0))
	}},
	{"m wide calls", func(_, m int) []byte {
		var c code
		for range wide {
			c.get(0)
		}
		for range m {
			c.op(0x10, functionWide)
		}
		c.fold(wide)
		c.op(0x21, 0)
		return plan{}.module(reads(c, 0))
	}},
}

// reads ends a body with a value made of n locals.
func reads(c code, n int) []byte {
	c.get(0)
	for i := range n {
		c.get(i + 1)
		c.op(0x6a)
	}
	return c.b
}

// line repeats the code m times, without branches.
func line(before, each, after string) func(n, m int) []byte {
	return func(_, m int) []byte {
		var c code
		c.op([]byte(before)...)
		for range m {
			c.op([]byte(each)...)
		}
		c.op([]byte(after)...)
		return plan{locals: 1, vectors: 2, globals: 1}.module(c.b)
	}
}

// lines are shapes without branches, each of m things.
var lines = []shape{
	{"nothing", line("\x20\x00", "\x01", "")},
	{"counts", line("\x20\x00", "\x67", "")},
	{"roots", line("\x20\x00\xb7", "\x9f", "\xaa")},
	{"sums", line("\x20\x00", "\x20\x00\x6a", "")},
	{"divisions", line("\x20\x00", "\x20\x00\x6d", "")},
	{"truncations", line("\x20\x00", "\xb7\xaa", "")},
	{"saturations", line("\x20\x00", "\xb7\xfc\x02", "")},
	{"minima", line("\x20\x00\xb7", "\x44\x00\x00\x00\x00\x00\x00\xf0\x3f\xa4", "\xaa")},
	{"signs", line("\x20\x00\xb7", "\x44\x00\x00\x00\x00\x00\x00\xf0\x3f\xa6", "\xaa")},
	{"unsigned", line("\x20\x00\xad", "\xba\xbd", "\xa7")},
	{"vector minima", line("\x20\x00\xfd\x11", "\x20\x02\xfd\xf4\x01", "\xfd\x1b\x00")},
	{"long products", line("\x20\x00\xfd\x11", "\x20\x02\xfd\xdd\x01", "\xfd\x1b\x00")},
	{"selections", line("\x20\x00", "\x20\x00\x20\x00\x1b", "")},
	{"loads", line("\x20\x00", "\x28\x02\x00", "")},
	{"stores", line("", "\x20\x00\x20\x00\x36\x02\x00", "\x20\x00")},
	{"sets", line("", "\x20\x00\x21\x01", "\x20\x01")},
	{"tees", line("\x20\x00", "\x22\x01", "")},
	{"globals", line("", "\x23\x00\x24\x00", "\x20\x00")},
	{"sizes", line("\x20\x00", "\x3f\x00\x6a", "")},
	{"tables", line("", "\x20\x00\x25\x00\x1a", "\x20\x00")},
	{"indirect calls", line("\x20\x00", "\x41\x00\x11\x00\x00", "")},
	{"direct calls", line("\x20\x00", "\x10\x02", "")},
	{"fills", line("", "\x20\x00\x20\x00\x20\x00\xfc\x0b\x00", "\x20\x00")},
	{"short fills", line("", "\x20\x00\x20\x00\x41\x08\xfc\x0b\x00", "\x20\x00")},
	{"short copies", line("", "\x20\x00\x20\x00\x41\x08\xfc\x0a\x00\x00", "\x20\x00")},
	{"table fills", line("", "\x20\x00\xd0\x70\x41\x08\xfc\x11\x00", "\x20\x00")},
	{"table copies", line("", "\x20\x00\x20\x00\x41\x08\xfc\x0e\x00\x00", "\x20\x00")},
	{"copies", line("", "\x20\x00\x20\x00\x20\x00\xfc\x0a\x00\x00", "\x20\x00")},
	{"growth", line("\x20\x00", "\x40\x00", "")},
	{"vectors", line("\x20\x00\xfd\x11", "\x20\x02\xfd\xae\x01", "\xfd\x1b\x00")},
	{"shuffles", line("\x20\x00\xfd\x11", "\x20\x02\xfd\x0d\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x1f", "\xfd\x1b\x00")},
	{"vector counts", line("\x20\x00\xfd\x11", "\xfd\x62", "\xfd\x1b\x00")},
	{"vector products", line("\x20\x00\xfd\x11", "\x20\x02\xfd\xd5\x01", "\xfd\x1b\x00")},
	{"vector shifts", line("\x20\x00\xfd\x11", "\x20\x00\xfd\x6c", "\xfd\x1b\x00")},
	{"vector loads", line("\x20\x00", "\xfd\x00\x04\x00\xfd\x1b\x00", "")},
	{"constants", line("", "\x42\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x1a", "\x20\x00")},
}

// crowds are shapes of m functions of n things.
var crowds = []shape{
	{"tiny functions", func(_, m int) []byte { return crowd(m, []byte{0x20, 0}) }},
	{"functions of ifs", func(n, m int) []byte {
		var c code
		for range n {
			c.op(0x20, 0, 0x04, 0x40, 0x0b)
		}
		return crowd(m, reads(c, 0))
	}},
	{"functions of loads", func(n, m int) []byte {
		var c code
		for i := range n {
			c.load(i)
			c.op(0x21, 0)
		}
		return crowd(m, reads(c, 0))
	}},
}

func crowd(m int, body []byte) []byte {
	all := make([][]byte, m)
	for i := range all {
		all[i] = body
	}
	return plan{}.module(all...)
}

// shapes returns all shapes.
func shapes() []shape {
	var all []shape
	for _, source := range sources {
		for _, way := range ways {
			all = append(all, shape{source.name + " across " + way.name, func(n, m int) []byte {
				var c code
				source.fill(&c, n)
				way.make(&c, m)
				source.drain(&c, n)
				p := plan{locals: 2}
				if source.plan != nil {
					p = source.plan(n)
				}
				return p.module(c.b)
			}})
		}
	}
	all = append(all, joins...)
	all = append(all, lines...)
	return append(all, crowds...)
}
