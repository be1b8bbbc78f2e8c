package main

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
)

// A table is CSV that was read. All cells are in one slice, since a slice for each of half a million rows takes more
// memory than a tool has.
type table struct {
	names []string
	kinds []kind
	cells []string // the cells of all rows: len(names) for each row
	notes []string
}

// rows returns the number of rows.
func (t *table) rows() int { return len(t.cells) / len(t.names) }

// row returns the cells of a row.
func (t *table) row(i int) []string { return t.cells[i*len(t.names) : (i+1)*len(t.names)] }

// A kind is the type of a column's cells.
type kind int

const (
	text kind = iota
	number
	boolean
)

// String returns the kind as the answer names it.
func (k kind) String() string { return [...]string{"text", "number", "boolean"}[k] }

// compare orders two cells of a column that are not empty.
func (k kind) compare(a, b string) int {
	if k == number {
		x, _ := strconv.ParseFloat(a, 64)
		y, _ := strconv.ParseFloat(b, 64)
		return cmp.Compare(x, y)
	}
	return compareTexts(a, b)
}

// compareTexts compares without regard to case. Sorting compares each cell many times, so compareTexts makes no texts in lower case: without a
// garbage collector, they would take more memory than a tool has.
func compareTexts(a, b string) int {
	for a != "" && b != "" {
		x, m := utf8.DecodeRuneInString(a)
		y, n := utf8.DecodeRuneInString(b)
		if x != y {
			if order := cmp.Compare(unicode.ToLower(x), unicode.ToLower(y)); order != 0 {
				return order
			}
		}
		a, b = a[m:], b[n:]
	}
	return cmp.Compare(len(a), len(b))
}

// These limits bound the memory for a text that consists of delimiters.
const (
	maxCells   = 600_000
	maxColumns = 10_000
)

// read reads the table in a query.
func read(c *toolsrv.Call, in query) (*table, error) {
	source := strings.TrimPrefix(in.CSV, "\ufeff")
	if strings.TrimSpace(source) == "" {
		return nil, &toolsrv.Error{Code: "empty", Message: "The text has no rows: pass CSV with a header row, or rows and \"header\": false."}
	}
	r := csv.NewReader(strings.NewReader(lineEnds(source)))
	r.Comma = delimiter(in.Delimiter, source)
	if widest(source, r.Comma) >= maxColumns {
		return nil, &toolsrv.Error{Code: "too_large", Message: fmt.Sprintf("A line has more than %d cells: is %q the delimiter?", maxColumns, r.Comma)}
	}
	r.FieldsPerRecord = -1
	r.ReuseRecord = true
	t := &table{}
	short := 0
	for i := 0; ; i++ {
		if i%often == 0 {
			c.Progress(float64(r.InputOffset())/float64(len(source)), steps, "reading")
		}
		record, err := r.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, broken(err)
		}
		if t.names == nil {
			t.names = t.header(record, in.Header)
			t.cells = make([]string, 0, min(maxCells, len(t.names)*(1+strings.Count(source, "\n"))))
			runtime.Gosched() // the allocation has woken the collector, which has no thread of its own in a sandbox
			if in.Header {
				continue
			}
		}
		if len(record) > len(t.names) {
			line, _ := r.FieldPos(0)
			return nil, &toolsrv.Error{Code: "too_many_cells", Message: fmt.Sprintf(
				"Line %d has %d cells, and there are %d columns: put a cell that holds the delimiter %q into double quotes, or pass another delimiter.", line, len(record), len(t.names), r.Comma)}
		}
		if len(t.cells)+len(t.names) > maxCells {
			return nil, &toolsrv.Error{Code: "too_large", Message: fmt.Sprintf("The text has more than %d cells: pass a part of it.", maxCells)}
		}
		t.cells = append(t.cells, record...)
		if missing := len(t.names) - len(record); missing > 0 {
			short++
			t.cells = append(t.cells, make([]string, missing)...)
		}
	}
	if short > 0 {
		t.notes = append(t.notes, fmt.Sprintf("%d rows have fewer cells than there are columns; the missing ones are empty.", short))
	}
	t.kinds = make([]kind, len(t.names))
	if in.Types == "auto" {
		for c := range t.kinds {
			t.kinds[c] = t.kindOf(c)
		}
	}
	return t, nil
}

// lineEnds replaces lone carriage returns, with which old spreadsheets end lines, with line ends that encoding/csv knows.
func lineEnds(s string) string {
	if strings.Contains(s, "\n") {
		return s
	}
	return strings.ReplaceAll(s, "\r", "\n")
}

// delimiter returns the delimiter with a name; for auto, the most frequent one in the first line, outside quotes.
func delimiter(name, source string) rune {
	known := map[string]rune{"comma": ',', "semicolon": ';', "tab": '\t', "pipe": '|'}
	if d, ok := known[name]; ok {
		return d
	}
	counts, quoted := map[rune]int{}, false
	for _, c := range source {
		if c == '"' {
			quoted = !quoted
		}
		if !quoted && (c == '\n' || c == '\r') {
			break
		}
		if !quoted {
			counts[c]++
		}
	}
	best := ','
	for _, d := range []rune{';', '\t', '|'} {
		if counts[d] > counts[best] {
			best = d
		}
	}
	return best
}

// widest returns the largest number of delimiters in one line, outside quotes.
func widest(source string, delimiter rune) (most int) {
	n, quoted := 0, false
	for _, c := range source {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '\n':
			n = 0
		case c == delimiter:
			n++
			most = max(most, n)
		}
	}
	return most
}

// broken translates an error of encoding/csv.
func broken(err error) error {
	at, ok := toolsrv.AsType[*csv.ParseError](err)
	if !ok {
		return err
	}
	message := fmt.Sprintf("Line %d, column %d: ", at.Line, at.Column)
	switch {
	case errors.Is(err, csv.ErrQuote):
		message += "a quote ends before its cell does, or is not closed: write a quote within a quoted cell twice."
	case errors.Is(err, csv.ErrBareQuote):
		message += "there is a quote within a cell that does not begin with one: put the whole cell into quotes, with no space before, and write the quote twice."
	default:
		message += at.Err.Error() + "."
	}
	return &toolsrv.Error{Code: "invalid_csv", Message: message, Data: map[string]int{"line": at.Line, "column": at.Column}}
}

// header returns the columns' names: the first row, with the names made different from each other, or numbers.
func (t *table) header(first []string, named bool) []string {
	names := make([]string, len(first))
	taken := make(map[string]bool, len(first))
	count := map[string]int{} // so that a thousand equal names do not take a million steps
	for i, name := range first {
		if !named || strings.TrimSpace(name) == "" {
			name = fmt.Sprintf("column_%d", i+1)
		}
		unlike := name
		for taken[unlike] {
			count[name] = max(count[name], 1) + 1
			unlike = fmt.Sprintf("%s_%d", name, count[name])
		}
		if unlike != name && len(t.notes) < 20 {
			t.notes = append(t.notes, fmt.Sprintf("Column %d has the name of another, %.100q: it is called %.110q here.", i+1, name, unlike))
		}
		taken[unlike] = true
		names[i] = unlike
	}
	return names
}

// kindOf returns the kind of a column, from all of its cells.
func (t *table) kindOf(c int) kind {
	numbers, booleans, filled := true, true, false
	for ; c < len(t.cells); c += len(t.names) {
		cell := t.cells[c]
		if cell == "" {
			continue
		}
		filled = true
		numbers = numbers && isNumber(cell)
		booleans = booleans && isBoolean(cell)
		if !numbers && !booleans {
			return text
		}
	}
	switch {
	case filled && numbers:
		return number
	case filled && booleans:
		return boolean
	}
	return text
}

// isNumber reports whether a cell is a JSON number that every client reads with sufficient precision. A number with a leading zero is a part number
// or a telephone number, and stays text. There may be half a million cells, so nothing is allocated.
func isNumber(cell string) bool {
	s := strings.TrimPrefix(cell, "-")
	n := leadingDigits(s)
	if n == 0 || n > 1 && s[0] == '0' {
		return false
	}
	s = s[n:]
	whole := s == ""
	if strings.HasPrefix(s, ".") {
		if n = leadingDigits(s[1:]); n == 0 {
			return false
		}
		s = s[1+n:]
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		if s = s[1:]; s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		if n = leadingDigits(s); n == 0 {
			return false
		}
		s = s[n:]
	}
	f, err := strconv.ParseFloat(cell, 64)
	return s == "" && err == nil && (!whole || math.Abs(f) <= 1<<53)
}

func leadingDigits(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }

func isBoolean(cell string) bool {
	return strings.EqualFold(cell, "true") || strings.EqualFold(cell, "false")
}

// An object is a row of the answer, with its members in the order of the columns.
type object []byte

// MarshalJSON returns the object.
func (o object) MarshalJSON() ([]byte, error) { return o, nil }

// JSONSchema makes object a toolsrv.Describer.
func (object) JSONSchema() string {
	return `{"type": "object", "additionalProperties": {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}, {"type": "null"}]}}`
}

// object returns some columns of a row.
func (t *table) object(columns []int, row int) object {
	cells := t.row(row)
	var out bytes.Buffer
	out.WriteByte('{')
	for i, c := range columns {
		if i > 0 {
			out.WriteByte(',')
		}
		writeText(&out, t.names[c])
		out.WriteByte(':')
		switch cell := cells[c]; {
		case t.kinds[c] == text:
			writeText(&out, cell)
		case cell == "":
			out.WriteString("null")
		default:
			out.WriteString(strings.ToLower(cell)) // TRUE, 1E5
		}
	}
	out.WriteByte('}')
	return out.Bytes()
}

func writeText(to *bytes.Buffer, s string) {
	e := json.NewEncoder(to)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can always be encoded
	to.Truncate(to.Len() - 1)
}
