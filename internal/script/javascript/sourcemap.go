package javascript

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// compact returns the map in the form that the guest reads after an error. The first line is JSON: the script's name and the sources, each with its
// text if it is the author's own. Then each line of the bundle has a line "column,source,line,column;…" in base 36. A place is left out if it follows
// from the one before, because both sides advance by the same amount. So the guest decodes only one line, not all lines before it. Lines of packages
// have only one place each.
func (m *sourceMap) compact(script string) ([]byte, error) {
	sources := make([][2]*string, len(m.Sources))
	for i := range m.Sources {
		sources[i][0] = &m.Sources[i]
		if i < len(m.SourcesContent) && !strings.Contains(m.Sources[i], "node_modules/") {
			sources[i][1] = m.SourcesContent[i]
		}
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	head := struct {
		Script  string       `json:"script"`
		Sources [][2]*string `json:"sources"`
	}{script, sources}
	if err := encoder.Encode(head); err != nil { // including the line break
		return nil, err
	}
	var at place // place in the sources: its numbers continue from segment to segment
	for i, line := range strings.Split(m.Mappings, ";") {
		if i > 0 {
			out.WriteByte('\n')
		}
		column, first := 0, true
		var before place
		var beforeColumn int
		for _, segment := range strings.Split(line, ",") {
			fields, err := decodeVLQ(segment)
			if err != nil {
				return nil, err
			}
			if len(fields) < 4 {
				if len(fields) > 0 {
					column += fields[0]
				}
				continue
			}
			column += fields[0]
			at = place{at.source + fields[1], at.line + fields[2], at.column + fields[3]}
			if at.source < 0 || at.source >= len(sources) {
				return nil, errors.New("the source map of the bundle can't be read")
			}
			if !first && sources[at.source][1] == nil && at.source == before.source {
				continue // for packages, the line is enough
			}
			if !first && at.source == before.source && at.line == before.line && at.column-before.column == column-beforeColumn {
				continue
			}
			if !first {
				out.WriteByte(';')
			}
			for j, n := range [4]int{column, at.source, at.line, at.column} {
				if j > 0 {
					out.WriteByte(',')
				}
				out.WriteString(strconv.FormatInt(int64(n), 36))
			}
			before, beforeColumn, first = at, column, false
		}
	}
	return out.Bytes(), nil
}

// A place is a position in a source; all numbers begin with 0.
type place struct{ source, line, column int }

// decodeVLQ decodes the numbers of a segment: base 64, six bits a digit. The highest bit says that more digits follow, and the lowest bit of the
// first digit is the sign.
func decodeVLQ(segment string) ([]int, error) {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	var out []int
	value, shift := 0, 0
	for i := range len(segment) {
		digit := strings.IndexByte(digits, segment[i])
		if digit < 0 || shift > 30 {
			return nil, errors.New("the source map of the bundle can't be read")
		}
		value |= digit & 31 << shift
		if shift += 5; digit&32 != 0 {
			continue
		}
		if n := value >> 1; value&1 == 0 {
			out = append(out, n)
		} else {
			out = append(out, -n)
		}
		value, shift = 0, 0
	}
	if shift != 0 {
		return nil, errors.New("the source map of the bundle can't be read")
	}
	return out, nil
}
