package wasmbin

// constant passes over a constant expression.
func (r *reader) constant() {
	for r.err == nil {
		start := r.pos
		switch op := r.byte("a constant expression"); op {
		case 0x0b: // end
			return
		case 0x41: // i32.const
			r.skipSigned(32, "an i32 constant")
		case 0x42: // i64.const
			r.skipSigned(64, "an i64 constant")
		case 0x43: // f32.const
			r.bytes(4, "an f32 constant")
		case 0x44: // f64.const
			r.bytes(8, "an f64 constant")
		case 0x23: // global.get
			r.u32("a global's index")
		case 0xd0: // ref.null
			r.refType()
		case 0xd2: // ref.func
			r.u32("a function's index")
		case 0x6a, 0x6b, 0x6c, 0x7c, 0x7d, 0x7e: // add, sub, mul of i32 and i64 (extended constants)
		case 0xfd: // v128.const
			if sub := r.byte("a constant expression"); sub != 0x0c {
				r.fail(start, "instruction 0xfd %#x is %w in a constant expression", sub, ErrUnsupported)
			}
			r.bytes(16, "a v128 constant")
		default:
			r.fail(start, "instruction %#x is %w in a constant expression", op, ErrUnsupported)
		}
	}
}

// The bits of an element segment's form.
const (
	elementPassive     = 1 // or declared, with elementExplicit
	elementExplicit    = 2 // of an active one: the table's index is there
	elementExpressions = 4
)

// checkElements passes over the element section.
func (r *reader) checkElements() {
	for range r.count(maxElements, "element segments") {
		start := r.pos
		form := r.u32("an element segment's form")
		if form > elementPassive|elementExplicit|elementExpressions {
			r.fail(start, "an element segment of form %d is %w", form, ErrUnsupported)
		}
		if form&elementPassive == 0 {
			if form&elementExplicit != 0 {
				r.u32("a table's index")
			}
			r.constant()
		}
		typed := form&(elementPassive|elementExplicit) != 0
		if form&elementExpressions != 0 {
			if typed {
				r.refType()
			}
			for range r.count(maxElements, "elements") {
				r.constant()
				if r.err != nil {
					return
				}
			}
		} else {
			if typed {
				if kind := r.byte("an element kind"); kind != 0 {
					r.fail(r.pos-1, "element kind %#x is %w", kind, ErrUnsupported)
				}
			}
			for range r.count(maxElements, "elements") {
				r.u32("a function's index")
				if r.err != nil {
					return
				}
			}
		}
		if r.err != nil {
			return
		}
	}
}

// checkBodies passes over the code section and returns the number of bodies. Locals are written in runs: ten bytes can
// ask for four billion, in every function. So a function may have maxLocals, and all functions together as many as
// the section has bytes beside that; code that uses a local takes two.
func (r *reader) checkBodies() int {
	n := r.count(maxFunctions, "bodies")
	section := r.end
	locals, most := int64(0), int64(r.left())+maxLocals
	for i := range n {
		start := r.pos
		size := int64(r.u32("a body's size"))
		switch {
		case size > int64(r.left()):
			r.fail(start, "body %d: %d bytes are announced, %d are there", i, size, r.left())
		case size > maxBody:
			r.fail(start, "body %d: %d bytes are %w: the most are %d", i, size, ErrUnsupported, maxBody)
		}
		if r.err != nil {
			return 0
		}
		r.end = r.pos + int(size)
		own := int64(0)
		for range r.count(maxLocals, "runs of locals") {
			own += int64(r.u32("a number of locals"))
			r.valueType("locals")
			if own > maxLocals {
				r.fail(start, "body %d: more than %d locals are %w", i, maxLocals, ErrUnsupported)
			}
			if r.err != nil {
				return 0
			}
		}
		if locals += own; locals > most {
			r.fail(start, "body %d: %d locals in %d bytes of code are %w", i, locals, section, ErrUnsupported)
		}
		if r.left() == 0 || r.data[r.end-1] != 0x0b {
			r.fail(start, "body %d does not end with the instruction end", i)
		}
		if r.err != nil {
			return 0
		}
		r.pos, r.end = r.end, section
	}
	return n
}

// checkData passes over the data section and returns the number of segments.
func (r *reader) checkData() int {
	n := r.count(maxDataSegments, "data segments")
	for range n {
		start := r.pos
		switch form := r.u32("a data segment's form"); form {
		case 0:
			r.constant()
		case 1: // passive
		case 2:
			r.u32("a memory's index")
			r.constant()
		default:
			r.fail(start, "a data segment of form %d is %w", form, ErrUnsupported)
		}
		r.bytes(int(r.u32("a data segment's size")), "a data segment")
		if r.err != nil {
			return 0
		}
	}
	return n
}
