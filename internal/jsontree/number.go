package jsontree

import (
	"math/bits"
	"strconv"
	"strings"
)

// A Decimal is an exact number: digits times a power of ten. It is never written out, so that work on it is linear in the number's text. The zero
// Decimal is 0.
type Decimal struct {
	negative bool
	a, b     string // the digits, in two parts, without zeros at either end
	exp      int64  // the power of ten of the last digit
}

// ParseDecimal returns the number that a text stands for. Read must have accepted the text.
func ParseDecimal(text string) Decimal {
	var d Decimal
	if text[0] == '-' {
		d.negative = true
		text = text[1:]
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		exp, _ := strconv.ParseInt(strings.TrimPrefix(text[i+1:], "+"), 10, 64) // Read has bounded the exponent
		d.exp = exp
		text = text[:i]
	}
	d.a, d.b, _ = strings.Cut(text, ".")
	d.exp -= int64(len(d.b))
	d.a = strings.TrimLeft(d.a, "0")
	if d.a == "" {
		d.b = strings.TrimLeft(d.b, "0")
	}
	n := len(d.b)
	d.b = strings.TrimRight(d.b, "0")
	d.exp += int64(n - len(d.b))
	if d.b == "" {
		n = len(d.a)
		d.a = strings.TrimRight(d.a, "0")
		d.exp += int64(n - len(d.a))
	}
	if d.a == "" && d.b == "" {
		return Decimal{}
	}
	return d
}

func (d *Decimal) size() int { return len(d.a) + len(d.b) }

func (d *Decimal) digit(i int) byte {
	if i < len(d.a) {
		return d.a[i]
	}
	return d.b[i-len(d.a)]
}

// sign returns -1, 0 or 1.
func (d *Decimal) sign() int {
	switch {
	case d.size() == 0:
		return 0
	case d.negative:
		return -1
	}
	return 1
}

// Compare returns -1, 0 or 1 as d is less than, equal to or greater than e.
func (d *Decimal) Compare(e *Decimal) int {
	s := d.sign()
	if t := e.sign(); s != t {
		if s < t {
			return -1
		}
		return 1
	}
	if s == 0 {
		return 0
	}
	return s * d.compareMagnitude(e)
}

func (d *Decimal) compareMagnitude(e *Decimal) int {
	m, n := int64(d.size())+d.exp, int64(e.size())+e.exp
	if m != n {
		if m < n {
			return -1
		}
		return 1
	}
	for i := range min(d.size(), e.size()) {
		if x, y := d.digit(i), e.digit(i); x != y {
			if x < y {
				return -1
			}
			return 1
		}
	}
	// Neither number's digits end in a zero, so the longer one is greater.
	switch {
	case d.size() < e.size():
		return -1
	case d.size() > e.size():
		return 1
	}
	return 0
}

// IsInteger reports whether the number has no fractional part.
func (d *Decimal) IsInteger() bool { return d.size() == 0 || d.exp >= 0 }

// Text returns an integer in JSON without a point or an exponent, or false if the number of digits exceeds most.
func (d *Decimal) Text(most int) (string, bool) {
	if d.size() == 0 {
		return "0", true
	}
	if d.exp < 0 || int64(d.size())+d.exp > int64(most) {
		return "", false
	}
	return d.signed() + strings.Repeat("0", int(d.exp)), true
}

// signed returns sign and digits, without the power of ten.
func (d *Decimal) signed() string {
	if d.negative {
		return "-" + d.a + d.b
	}
	return d.a + d.b
}

// Uint64 returns the digits as an integer, without sign and power of ten, or false if they don't fit.
func (d *Decimal) Uint64() (uint64, bool) {
	if d.size() > 19 {
		return 0, false
	}
	n := uint64(0)
	for i := range d.size() {
		n = n*10 + uint64(d.digit(i)-'0')
	}
	return n, true
}

// Int returns an integer, or limit if the integer is larger. For a negative integer it returns 0.
func (d *Decimal) Int(limit int) int {
	if d.sign() <= 0 {
		return 0
	}
	if int64(d.size())+d.exp > 18 {
		return limit
	}
	n, _ := d.Uint64()
	for e := d.exp; e > 0; e-- {
		n *= 10
	}
	if n > uint64(limit) {
		return limit
	}
	return int(n)
}

// IsMultipleOf reports whether d is an integer times m, a number other than 0 whose digits Uint64 can return.
func (d *Decimal) IsMultipleOf(m *Decimal) bool {
	if d.size() == 0 {
		return true
	}
	if d.exp < m.exp {
		// The digits of a multiple of m would have a factor of ten here, but d's digits don't end in a zero.
		return false
	}
	divisor, _ := m.Uint64()
	r := d.mod(divisor)
	for power, e := 10%divisor, d.exp-m.exp; e > 0 && r != 0; e >>= 1 {
		if e&1 == 1 {
			r = mulMod(r, power, divisor)
		}
		power = mulMod(power, power, divisor)
	}
	return r == 0
}

// mod returns the remainder of the digits divided by m.
func (d *Decimal) mod(m uint64) uint64 {
	r := uint64(0)
	for i := range d.size() {
		hi, lo := bits.Mul64(r, 10)
		lo, carry := bits.Add64(lo, uint64(d.digit(i)-'0'), 0)
		r = bits.Rem64(hi+carry, lo, m)
	}
	return r
}

func mulMod(x, y, m uint64) uint64 {
	hi, lo := bits.Mul64(x, y)
	return bits.Rem64(hi, lo, m)
}
