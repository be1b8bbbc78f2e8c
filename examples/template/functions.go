package main

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"
	"unicode"
	"unicode/utf8"
)

// A decimal is a number that is not whole. It prints without an exponent.
type decimal float64

// String writes the number's shortest digits.
func (d decimal) String() string { return strconv.FormatFloat(float64(d), 'f', -1, 64) }

// MarshalJSON writes the number as encoding/json writes a float64, and not as String does.
func (d decimal) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(d), 'g', -1, 64), nil
}

// functions are the functions that a template may call. Of Go's own functions, they replace those that build texts by ones with limits, and those
// that compare by ones that accept any two numbers.
func (r *renderer) functions() template.FuncMap {
	bounded := func(f func(a ...any) string) func(a ...any) (string, error) {
		return func(a ...any) (string, error) {
			if err := r.afford(a...); err != nil {
				return "", err
			}
			return f(a...), nil
		}
	}
	return template.FuncMap{
		stepName: r.step, enterName: r.enter, leaveName: r.leave, blankName: blank,
		"print": bounded(fmt.Sprint), "println": bounded(fmt.Sprintln), "html": bounded(template.HTMLEscaper),
		"js": bounded(template.JSEscaper), "urlquery": bounded(template.URLQueryEscaper),
		"printf": func(format string, a ...any) (string, error) { return r.printf(format, a) },
		"json": func(v any) (string, error) {
			if err := r.afford(v); err != nil {
				return "", err
			}
			return asJSON(v)
		},
		"upper": r.text(strings.ToUpper), "lower": r.text(strings.ToLower), "trim": r.text(strings.TrimSpace), "title": r.text(title),
		"replace":     r.replace,
		"split":       func(separator string, s any) ([]any, error) { return r.split(separator, s) },
		"join":        r.join,
		"contains":    func(part, s any) bool { return strings.Contains(show(s), show(part)) },
		"starts_with": func(part, s any) bool { return strings.HasPrefix(show(s), show(part)) },
		"ends_with":   func(part, s any) bool { return strings.HasSuffix(show(s), show(part)) },
		"default": func(otherwise, v any) any {
			if truth, _ := template.IsTrue(v); !truth {
				return otherwise
			}
			return v
		},
		"add": calculate(func(a, b float64) float64 { return a + b }), "sub": calculate(func(a, b float64) float64 { return a - b }),
		"mul": calculate(func(a, b float64) float64 { return a * b }), "div": calculate(func(a, b float64) float64 { return a / b }),
		"round": func(places int, v any) (any, error) {
			f, err := numeric(v)
			scale := math.Pow(10, float64(max(-15, min(places, 15))))
			if math.IsInf(f*scale, 0) {
				return number(f), err // it is too large to have digits after the decimal point
			}
			return number(math.Round(f*scale) / scale), err
		},
		"first": func(list any) (any, error) { return element(list, 0) },
		"last":  func(list any) (any, error) { return element(list, -1) },
		"sort": func(list []any) ([]any, error) {
			return slices.SortedFunc(slices.Values(list), order), r.work(list)
		},
		"reverse": func(list []any) ([]any, error) {
			c := slices.Clone(list)
			slices.Reverse(c)
			return c, r.work(list)
		},
		"keys": func(object map[string]any) ([]any, error) { return keys(object), r.work(object) },
		"eq":   equal,
		"ne":   func(a, b any) (bool, error) { same, err := equal(a, b); return !same, err },
		"lt":   func(a, b any) (bool, error) { n, err := compare(a, b); return n < 0, err },
		"le":   func(a, b any) (bool, error) { n, err := compare(a, b); return n <= 0, err },
		"gt":   func(a, b any) (bool, error) { n, err := compare(a, b); return n > 0, err },
		"ge":   func(a, b any) (bool, error) { n, err := compare(a, b); return n >= 0, err },
	}
}

// These functions are inserted into a template by watch. A template that calls them itself only ends sooner, since calls of leave count as steps,
// too.
const stepName, enterName, leaveName, blankName = "_step", "_enter", "_leave", "_blank"

// blank prints nothing for null and missing values; Go would print "<no value>".
func blank(v any) any {
	if v == nil {
		return ""
	}
	return v
}

// watch inserts a call of step before each list of nodes (the body of a template, of a loop, of a condition), and calls of enter and leave around
// each call of a template. It also makes all output pass through blank.
func watch(list *parse.ListNode) {
	if list == nil {
		return
	}
	nodes := []parse.Node{call(stepName, list.Pos)}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.RangeNode:
			watch(n.List)
			watch(n.ElseList)
		case *parse.IfNode:
			watch(n.List)
			watch(n.ElseList)
		case *parse.WithNode:
			watch(n.List)
			watch(n.ElseList)
		case *parse.ActionNode:
			if len(n.Pipe.Decl) == 0 {
				n.Pipe.Cmds = append(n.Pipe.Cmds, call(blankName, n.Pos).Pipe.Cmds...)
			}
		case *parse.TemplateNode:
			nodes = append(nodes, call(enterName, n.Pos), n, call(leaveName, n.Pos))
			continue
		}
		nodes = append(nodes, n)
	}
	list.Nodes = nodes
}

// call returns the node of a function's call.
func call(name string, at parse.Pos) *parse.ActionNode {
	return &parse.ActionNode{NodeType: parse.NodeAction, Pos: at, Pipe: &parse.PipeNode{NodeType: parse.NodePipe, Pos: at, Cmds: []*parse.CommandNode{
		{NodeType: parse.NodeCommand, Pos: at, Args: []parse.Node{parse.NewIdentifier(name).SetPos(at)}},
	}}}
}

// afford counts a step, or more for long values, and refuses to make a text from values that are larger than the result may be.
func (r *renderer) afford(values ...any) error {
	if _, err := r.step(); err != nil {
		return err
	}
	room := r.limit
	for _, v := range values {
		if room -= size(v, room); room < 0 {
			return errLong
		}
	}
	r.steps -= (r.limit - room) / 1000 // long values take longer
	return nil
}

// work counts the steps for going through a value without making a text from it.
func (r *renderer) work(v any) error {
	r.steps -= size(v, math.MaxInt) / 50
	_, err := r.step()
	return err
}

// size returns roughly how long the text of a value is. It may stop counting at any length above most.
func size(v any, most int) int {
	switch v := v.(type) {
	case string:
		return len(v)
	case []any:
		n := 2
		for _, e := range v {
			if n += 1 + size(e, most-n); n > most {
				return n
			}
		}
		return n
	case map[string]any:
		n := 5
		for name, e := range v {
			if n += 2 + len(name) + size(e, most-n); n > most {
				return n
			}
		}
		return n
	}
	return 8
}

// printf is Go's, but limits widths, and accepts whole numbers for formats of floats.
func (r *renderer) printf(format string, a []any) (string, error) {
	if err := r.afford(append([]any{format}, a...)...); err != nil {
		return "", err
	}
	a = slices.Clone(a)
	next := 0
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		width := 0
		for i++; i < len(format) && strings.IndexByte("+-# .0123456789", format[i]) >= 0; i++ {
			if width = width*10 + int(format[i]-'0'); format[i] < '0' || format[i] > '9' {
				width = 0
			}
			if width > 1000 {
				return "", invalid("printf takes a width of 1000 at most")
			}
		}
		if i == len(format) || format[i] == '*' || format[i] == '[' {
			return "", invalid(fmt.Sprintf("printf does not take the format %.50q: after %% come digits and a letter", format))
		}
		if format[i] == '%' {
			continue
		}
		if next == len(a) {
			return "", invalid(fmt.Sprintf("printf %.50q needs more values than it was given", format))
		}
		value, err := formatted(format[i], a[next])
		if err != nil {
			return "", invalid("printf: " + err.Error())
		}
		a[next] = value
		next++
	}
	if next < len(a) {
		return "", invalid(fmt.Sprintf("printf %.50q needs %d values and was given %d", format, next, len(a)))
	}
	return fmt.Sprintf(format, a...), nil
}

// formatted converts a value to a type that Go's printf accepts for a letter of the format. Otherwise Go would print an error into the text.
func formatted(letter byte, v any) (any, error) {
	f, err := numeric(v)
	_, whole := v.(int)
	switch {
	case strings.IndexByte("eEfFgG", letter) >= 0 && err == nil:
		return f, nil
	case strings.IndexByte("bcdoOxXU", letter) >= 0 && err == nil && !whole:
		return nil, fmt.Errorf("%%%c needs a whole number, and %s is not one: round it, or write %%.2f", letter, show(v))
	case strings.IndexByte("eEfFgGbcdoOxXU", letter) >= 0:
		if err != nil {
			return nil, fmt.Errorf("%%%c needs a number, and %.50q is not one", letter, show(v))
		}
		return v, nil
	case letter == 's' || letter == 'q':
		return show(v), nil
	case letter == 'v':
		if v == nil {
			return "", nil
		}
		return v, nil
	case letter == 't':
		if _, ok := v.(bool); !ok {
			return nil, fmt.Errorf("%%t needs true or false, and %.50q is neither", show(v))
		}
		return v, nil
	}
	return nil, fmt.Errorf("there is no %%%c: use %%s, %%d, %%f, %%v, %%q, %%x or %%t", letter)
}

// A misuse is a mistake in a template that this program finds, rather than package text/template.
type misuse struct{ message string }

// Error returns the message.
func (e *misuse) Error() string { return e.message }

func invalid(message string) error { return &misuse{message} }

func (r *renderer) text(f func(string) string) func(v any) (string, error) {
	return func(v any) (string, error) {
		if err := r.afford(v); err != nil {
			return "", err
		}
		return f(show(v)), nil
	}
}

func (r *renderer) replace(old, by string, v any) (string, error) {
	s := show(v)
	if err := r.afford(s); err != nil {
		return "", err
	}
	if strings.Count(s, old)*len(by) > r.limit {
		return "", errLong
	}
	return strings.ReplaceAll(s, old, by), nil
}

func (r *renderer) split(separator string, v any) ([]any, error) {
	if err := r.afford(v); err != nil {
		return nil, err
	}
	var out []any
	for _, part := range strings.Split(show(v), separator) {
		out = append(out, part)
	}
	return out, nil
}

func (r *renderer) join(separator string, list []any) (string, error) {
	if err := r.afford(list); err != nil {
		return "", err
	}
	if len(separator)*len(list) > r.limit {
		return "", errLong
	}
	parts := make([]string, len(list))
	for i, e := range list {
		parts[i] = show(e)
	}
	return strings.Join(parts, separator), nil
}

// title makes the first letter of each word a capital.
func title(s string) string {
	before := ' '
	return strings.Map(func(c rune) rune {
		defer func() { before = c }()
		if unicode.IsSpace(before) || before == '-' {
			return unicode.ToTitle(c)
		}
		return c
	}, s)
}

// show returns a value as a template prints it.
func show(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	return fmt.Sprint(v)
}

// asNumber returns v as a number, if it is one.
func asNumber(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case float64:
		return v, true
	case decimal:
		return float64(v), true
	}
	return 0, false
}

func numeric(v any) (float64, error) {
	if f, ok := asNumber(v); ok {
		return f, nil
	}
	return 0, invalid(fmt.Sprintf("%.50q is not a number", show(v)))
}

// calculate turns f into a function that templates can call.
func calculate(f func(a, b float64) float64) func(a, b any) (any, error) {
	return func(a, b any) (any, error) {
		x, err := numeric(a)
		if err != nil {
			return nil, err
		}
		y, err := numeric(b)
		if err != nil {
			return nil, err
		}
		n := f(x, y)
		if math.IsNaN(n) || math.IsInf(n, 0) {
			return nil, invalid(fmt.Sprintf("%v and %v have no result: a division by zero, or a number too large", a, b))
		}
		return number(n), nil
	}
}

// equal reports whether the first value equals one of the others.
func equal(a any, others ...any) (bool, error) {
	if len(others) == 0 {
		return false, invalid("eq needs two values")
	}
	for _, b := range others {
		x, ok := asNumber(a)
		y, also := asNumber(b)
		if ok && also && x == y || !(ok && also) && reflect.DeepEqual(a, b) {
			return true, nil
		}
	}
	return false, nil
}

func compare(a, b any) (int, error) {
	if x, ok := asNumber(a); ok {
		if y, ok := asNumber(b); ok {
			return cmp.Compare(x, y), nil
		}
	}
	s, ok := a.(string)
	u, also := b.(string)
	if !ok || !also {
		return 0, invalid(fmt.Sprintf("%.50q and %.50q can't be compared: take two numbers or two texts", show(a), show(b)))
	}
	return strings.Compare(s, u), nil
}

// order sorts numbers before all other values.
func order(a, b any) int {
	x, ok := asNumber(a)
	y, also := asNumber(b)
	switch {
	case ok && also:
		return cmp.Compare(x, y)
	case ok:
		return -1
	case also:
		return 1
	}
	return strings.Compare(show(a), show(b))
}

// element returns the first or last element of a list or character of a text, or nothing.
func element(v any, i int) (any, error) {
	var list []any
	switch v := v.(type) {
	case []any:
		list = v
	case string:
		if _, n := utf8.DecodeRuneInString(v); i == 0 {
			return v[:n], nil
		}
		_, n := utf8.DecodeLastRuneInString(v)
		return v[len(v)-n:], nil
	default:
		return nil, invalid(fmt.Sprintf("%.50q is not a list", show(v)))
	}
	if len(list) == 0 {
		return "", nil
	}
	return list[(i+len(list))%len(list)], nil
}

// keys returns the names in an object, in order.
func keys(object map[string]any) []any {
	var out []any
	for name := range object {
		out = append(out, name)
	}
	slices.SortFunc(out, order)
	return out
}
