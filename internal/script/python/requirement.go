package python

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A requirement is a library that is needed, in the form of PEP 508. pip takes care of its version.
type requirement struct {
	name   string
	extras []string
	marker []string // the words after the semicolon
}

var (
	requirementName = regexp.MustCompile(`^\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[([^\]]*)\])?`)
	markerWord      = regexp.MustCompile(`\s*(\(|\)|"[^"]*"|'[^']*'|===|==|!=|<=|>=|~=|<|>|[A-Za-z_][A-Za-z0-9_.]*)`)
)

// parseRequirement reads a requirement.
func parseRequirement(text string) (requirement, error) {
	m := requirementName.FindStringSubmatch(text)
	if m == nil {
		return requirement{}, errors.New("it is not the name of a library")
	}
	r := requirement{name: m[1]}
	for extra := range strings.SplitSeq(m[2], ",") {
		if extra = strings.TrimSpace(extra); extra != "" {
			r.extras = append(r.extras, normalized(extra))
		}
	}
	// The address of a library may contain semicolons that have no space before them.
	split := ";"
	if strings.Contains(text, "@") {
		split = " ;"
	}
	_, marker, _ := strings.Cut(text, split)
	for rest := strings.TrimSpace(marker); rest != ""; {
		word := markerWord.FindStringSubmatchIndex(rest)
		if word == nil || word[0] != 0 {
			return requirement{}, fmt.Errorf("its condition %q can't be read", marker)
		}
		r.marker = append(r.marker, rest[word[2]:word[3]])
		rest = strings.TrimSpace(rest[word[1]:])
	}
	return r, nil
}

// engineSays returns the engine's value of a variable in markers, and whether there is one.
func engineSays(name string) (value string, ok bool) {
	switch name {
	case "python_version":
		return "3.13", true
	case "python_full_version", "implementation_version":
		return "3.13.5", true
	case "os_name":
		return "posix", true
	case "sys_platform":
		return "wasi", true
	case "platform_machine":
		return "wasm32", true
	case "platform_python_implementation":
		return "CPython", true
	case "implementation_name":
		return "cpython", true
	case "platform_system", "platform_release", "platform_version":
		return "", true
	}
	return "", false
}

// applies reports whether a requirement holds in the engine, for a library that is used with extras.
func (r requirement) applies(extras []string) bool {
	if len(r.marker) == 0 {
		return true
	}
	m := marker{words: r.marker, extras: extras}
	holds := m.either()
	return holds || m.broken // a marker that is not understood is taken to hold
}

// A marker is a condition that is being read.
type marker struct {
	words  []string
	extras []string
	depth  int
	broken bool
}

func (m *marker) next() string {
	if len(m.words) == 0 {
		m.broken = true
		return ""
	}
	word := m.words[0]
	m.words = m.words[1:]
	return word
}

func (m *marker) follows(word string) bool {
	if len(m.words) == 0 || m.words[0] != word {
		return false
	}
	m.words = m.words[1:]
	return true
}

func (m *marker) either() bool {
	holds := m.both()
	for m.follows("or") {
		also := m.both()
		holds = holds || also
	}
	return holds
}

func (m *marker) both() bool {
	holds := m.comparison()
	for m.follows("and") {
		also := m.comparison()
		holds = holds && also
	}
	return holds
}

func (m *marker) comparison() bool {
	if m.depth++; m.depth > 1000 {
		m.broken = true
		return false
	}
	if m.follows("(") {
		holds := m.either()
		if !m.follows(")") {
			m.broken = true
		}
		return holds
	}
	left := m.next()
	operator := m.next()
	if operator == "not" {
		operator = "not " + m.next()
	}
	right := m.next()
	if left == "extra" || right == "extra" {
		name := left
		if left == "extra" {
			name = right
		}
		has := slices.Contains(m.extras, normalized(strings.Trim(name, `"'`)))
		return has == (operator == "==")
	}
	return m.compare(m.value(left), operator, m.value(right))
}

// value returns the value of a word in a marker.
func (m *marker) value(word string) string {
	if strings.HasPrefix(word, `"`) || strings.HasPrefix(word, `'`) {
		return word[1 : len(word)-1]
	}
	value, ok := engineSays(word)
	if !ok {
		m.broken = true
	}
	return value
}

func (m *marker) compare(left, operator, right string) bool {
	order := strings.Compare(left, right)
	if a, ok := version(left); ok {
		if b, ok := version(strings.TrimSuffix(right, ".*")); ok {
			if strings.HasSuffix(right, ".*") && len(a) > len(b) {
				a = a[:len(b)]
			}
			order = compareVersions(a, b)
		}
	}
	switch operator {
	case "==", "===":
		return order == 0
	case "!=":
		return order != 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	case ">=", "~=":
		return order >= 0
	case "in":
		return strings.Contains(right, left)
	case "not in":
		return !strings.Contains(right, left)
	}
	m.broken = true
	return false
}

// version returns the numbers of a version, and whether text is a version.
func version(text string) ([]int, bool) {
	var out []int
	for part := range strings.SplitSeq(text, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil, false
		}
		out = append(out, n)
	}
	return out, true
}

func compareVersions(a, b []int) int {
	for len(a) < len(b) {
		a = append(a, 0)
	}
	for len(b) < len(a) {
		b = append(b, 0)
	}
	return slices.Compare(a, b)
}
