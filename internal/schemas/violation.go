package schemas

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/internal/jsontree"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools/misfit"
)

// MaxViolations is the number of violations after which the others are only counted.
const MaxViolations = 100

const (
	// maxReport is about how many bytes of JSON the violations of one body may take.
	maxReport = 60 << 10
	// maxInput is the length of the longest value that a violation repeats in full.
	maxInput = 1 << 10
	// maxClip is how many bytes of a longer foreign text are kept.
	maxClip = 128
	// maxBranches is how many violations of all alternatives together are listed; if there are more, they are summarized.
	maxBranches = 8
)

// A report collects violations. A nil report collects none.
type report struct {
	found []finding
	more  int // how many violations did not fit
}

// A finding is a violation whose place is still a value of the tree.
type finding struct {
	at       int32
	name     string // name of a member that is missing in at
	isName   bool
	mismatch bool           // the value has the wrong type, so nothing else was looked at
	known    []*objectRules // for a member that no schema allows: rules with names that may have been meant
	kind     string
	msg      string
	ctx      map[string]any
}

func (rep *report) size() int {
	if rep == nil {
		return 0
	}
	return len(rep.found) + rep.more
}

// add adds a finding. It returns false, for callers to return.
func (r *run) add(rep *report, f finding) bool {
	if rep == nil || r.work < 0 {
		return false
	}
	r.work -= reportWorkPerFind
	if len(rep.found) >= MaxViolations {
		rep.more++
		return false
	}
	same := func(g finding) bool { return f.at == g.at && f.name == g.name && f.kind == g.kind && f.msg == g.msg }
	if !slices.ContainsFunc(rep.found, same) { // several schemas may report the same violation
		rep.found = append(rep.found, f)
	}
	return false
}

func (r *run) extra(rep *report, at int32, known ...*objectRules) bool {
	return r.add(rep, finding{at: at, kind: "extra_forbidden", msg: "Extra inputs are not permitted", known: known})
}

// otherwise checks a member to which only n applies. known has the rules of schemas with other members.
func (r *run) otherwise(n *node, at int32, rep *report, known ...*objectRules) bool {
	if n.never && rep != nil {
		r.work--
		return r.extra(rep, at, known...)
	}
	return r.check(n, at, rep, nil)
}

// known returns the rules for objects of n and of the schemas that apply together with it.
func (r *run) known(n *node) (all []*objectRules) {
	if r.work--; r.work < 0 {
		return nil
	}
	if n.object != nil {
		all = append(all, n.object)
	}
	for _, child := range n.inPlace() {
		all = append(all, r.known(child)...)
	}
	return all
}

// meant returns the name that was probably meant by a member which is not allowed, or "". It uses only the remaining work of the check, and skips
// what would take more.
func (r *run) meant(f *finding) string {
	if len(f.known) == 0 {
		return ""
	}
	value := &r.tree.Values[f.at] // a member
	cost := int(r.tree.Values[value.Parent].Count) / 8
	var names []string
	for _, rules := range f.known {
		cost += len(rules.members) / 8
		if cost > r.work {
			return ""
		}
		for i := range rules.members {
			m := &rules.members[i]
			if gap := len(m.name) - len(value.Key); m.node != nil && !m.node.never && -4 < gap && gap < 4 {
				names = append(names, m.name)
				cost += 1 + len(m.name)*len(value.Key)/4
			}
		}
	}
	if cost > r.work {
		return ""
	}
	r.work -= cost
	near := text.Nearest(value.Key, names)
	if there := r.tree.Member(value.Parent, near); there != 0 && r.tree.Values[there].Start >= 0 {
		return "" // the client has sent a member with that name, too
	}
	return near
}

func (r *run) absent(rep *report, at int32, name, because string) bool {
	if rep == nil {
		return false
	}
	f := finding{at: at, name: name, isName: true, kind: "missing", msg: "Field required"}
	if because != "" {
		f.msg = "Field required where '" + text.Clip(because, maxClip) + "' is present"
	}
	return r.add(rep, f)
}

// modelType and modelMsg are pydantic's words for a value that should be an object with known members.
const (
	modelType = "model_attributes_type"
	modelMsg  = "Input should be a valid dictionary or object to extract fields from"
)

// typeWords are pydantic's words for a value of a wrong type.
var typeWords = map[string]struct{ kind, want string }{
	"null":    {"none_required", "None"},
	"boolean": {"bool_type", "a valid boolean"},
	"number":  {"float_type", "a valid number"},
	"string":  {"string_type", "a valid string"},
	"array":   {"list_type", "a valid list"},
	"object":  {"dict_type", "a valid dictionary"},
	"integer": {"int_type", "a valid integer"},
}

func (r *run) wrongType(rep *report, n *node, at int32) bool {
	// As in pydantic, the list of choices says more than their type.
	if n.constant != nil && !r.chosen(n.constant, at) {
		f := notChosen(at, "literal_error", n.constant)
		f.mismatch = true
		return r.add(rep, f)
	}
	if n.enum != nil && !r.chosen(n.enum, at) {
		f := notChosen(at, "enum", n.enum)
		f.mismatch = true
		return r.add(rep, f)
	}
	f := finding{at: at, mismatch: true}
	var want []string
	for _, name := range n.typeList {
		// As in pydantic, a value that may be null is described by its other type.
		if name == "null" && len(n.typeList) > 1 {
			continue
		}
		if f.kind == "" {
			f.kind = typeWords[name].kind
		}
		want = append(want, typeWords[name].want)
	}
	f.msg = "Input should be " + joined(want)
	if f.kind == "dict_type" && len(want) == 1 && n.object != nil && len(n.object.members) > 0 {
		f.kind, f.msg = modelType, modelMsg
	}
	if f.kind == "int_type" && len(want) == 1 && r.tree.Values[at].Kind == jsontree.Number {
		f.kind, f.msg = "int_from_float", f.msg+", got a number with a fractional part"
	}
	return r.add(rep, f)
}

func notChosen(at int32, kind string, c *choice) finding {
	return finding{at: at, kind: kind, msg: "Input should be " + c.expected, ctx: map[string]any{"expected": c.expected}}
}

func (r *run) outside(rep *report, at int32, kind, want, ctx string, b *bound) bool {
	if rep == nil {
		return false
	}
	return r.add(rep, finding{
		at: at, kind: kind, msg: "Input should be " + want + " " + b.text, ctx: map[string]any{ctx: json.Number(b.text)},
	})
}

func (r *run) wrongLength(rep *report, at int32, rules *textRules) bool {
	if rep == nil {
		return false
	}
	// minLength may be above maxLength; then both are reported.
	n := utf8.RuneCountInString(r.tree.Values[at].Decoded())
	if n < rules.min {
		r.add(rep, finding{at: at, kind: "string_too_short", msg: "String should have at least " + counted(rules.min, "character"), ctx: map[string]any{"min_length": rules.min}})
	}
	if rules.max >= 0 && n > rules.max {
		r.add(rep, finding{at: at, kind: "string_too_long", msg: "String should have at most " + counted(rules.max, "character"), ctx: map[string]any{"max_length": rules.max}})
	}
	return false
}

func (r *run) tooFew(rep *report, at int32, what string, limit, count int) bool {
	if rep == nil {
		return false
	}
	return r.add(rep, finding{
		at: at, kind: "too_short", msg: fmt.Sprintf("%s should have at least %s after validation, not %d", what, counted(limit, "item"), count),
		ctx: map[string]any{"field_type": what, "min_length": limit, "actual_length": count},
	})
}

func (r *run) tooMany(rep *report, at int32, what string, limit, count int) bool {
	if rep == nil {
		return false
	}
	return r.add(rep, finding{
		at: at, kind: "too_long", msg: fmt.Sprintf("%s should have at most %s after validation, not %d", what, counted(limit, "item"), count),
		ctx: map[string]any{"field_type": what, "max_length": limit, "actual_length": count},
	})
}

func (r *run) mismatch(rep *report, at int32, p *pattern) bool {
	if rep == nil {
		return false
	}
	return r.add(rep, finding{
		at: at, kind: "string_pattern_mismatch", msg: "String should match pattern '" + text.Clip(p.text, maxClip) + "'", ctx: map[string]any{"pattern": text.Clip(p.text, maxClip)},
	})
}

// formatWords are pydantic's words for a text that does not have the format. %s is replaced by the reason.
var formatWords = map[string]struct{ kind, msg, reason string }{
	"date":      {"date_from_datetime_parsing", "Input should be a valid date or datetime, %s", "expected a date such as 2024-12-31"},
	"date-time": {"datetime_from_date_parsing", "Input should be a valid datetime or date, %s", "expected a time such as 2024-12-31T23:59:59Z"},
	"time":      {"time_parsing", "Input should be in a valid time format, %s", "expected a time such as 23:59:59Z"},
	"duration":  {"time_delta_parsing", "Input should be a valid timedelta, %s", "expected a duration such as P1DT12H"},
	"uuid":      {"uuid_parsing", "Input should be a valid UUID, %s", "expected 32 hexadecimal digits in groups of 8-4-4-4-12"},
	"uri":       {"url_parsing", "Input should be a valid URL, %s", "expected an absolute one"},
	"iri":       {"url_parsing", "Input should be a valid URL, %s", "expected an absolute one"},
	"email":     {"value_error", "value is not a valid email address: %s", "expected one such as name@example.com"},
	"ipv4":      {"ip_v4_address", "Input is not a valid IPv4 address", ""},
	"ipv6":      {"ip_v6_address", "Input is not a valid IPv6 address", ""},
	"regex":     {"pattern_regex", "Input should be a valid regular expression", ""},
	"base64":    {"base64_decode", "Base64 decoding error: '%s'", "expected the standard alphabet with padding"},
}

func (r *run) misformed(rep *report, at int32, name string) bool {
	if rep == nil {
		return false
	}
	w, ok := formatWords[name]
	if !ok {
		return r.valueError(rep, at, "input should have the format "+name)
	}
	f := finding{at: at, kind: w.kind, msg: w.msg}
	if w.reason != "" {
		f.msg = strings.Replace(w.msg, "%s", w.reason, 1)
		f.ctx = map[string]any{"error": w.reason}
	}
	return r.add(rep, f)
}

// valueError adds a violation for which pydantic has no type.
func (r *run) valueError(rep *report, at int32, msg string) bool {
	if rep == nil {
		return false
	}
	return r.add(rep, finding{at: at, kind: "value_error", msg: "Value error, " + msg, ctx: map[string]any{"error": msg}})
}

func (r *run) forbidden(rep *report, at int32) bool {
	return r.valueError(rep, at, "input should not match the schema in \"not\"")
}

func (r *run) repeated(rep *report, at, i, j int32) bool {
	if rep == nil {
		return false
	}
	return r.valueError(rep, at, fmt.Sprintf("items should be unique, but those at %d and %d are equal", i, j))
}

func (r *run) wrongContents(rep *report, at int32, rules *arrayRules, count int) bool {
	if rep == nil {
		return false
	}
	if count < rules.minContains {
		return r.valueError(rep, at, fmt.Sprintf("list should have at least %s matching \"contains\", not %d", counted(rules.minContains, "item"), count))
	}
	return r.valueError(rep, at, fmt.Sprintf("list should have at most %s matching \"contains\", not %d", counted(rules.maxContains, "item"), count))
}

func (r *run) twoBranches(rep *report, at int32, i, j int) bool {
	if rep == nil {
		return false
	}
	return r.valueError(rep, at, fmt.Sprintf("input should match exactly one of the alternatives, but it matches those at %d and %d", i, j))
}

// noBranch reports why none of the alternatives fits. If there are few violations, it lists those of the alternatives with the right type.
func (r *run) noBranch(rep *report, list []*node, at int32) {
	if rep == nil {
		return
	}
	var fit, unfit []finding
	branches := 0
	for _, child := range list {
		var sub report
		r.check(child, at, &sub, nil)
		if r.work < 0 {
			return
		}
		if len(sub.found) == 1 && sub.found[0].mismatch && sub.found[0].at == at {
			if len(unfit) <= maxBranches {
				unfit = append(unfit, sub.found...)
			}
			continue
		}
		branches++
		if branches == 1 || len(fit) <= maxBranches {
			fit = append(fit, sub.found...)
		}
	}
	if branches == 0 {
		fit = unfit
		// As in pydantic, a value that may be null is described by its other type.
		if rest := slices.DeleteFunc(slices.Clone(unfit), func(f finding) bool { return f.kind == "none_required" }); len(rest) > 0 {
			fit = rest
		}
	}
	if branches != 1 && len(fit) > maxBranches {
		r.valueError(rep, at, fmt.Sprintf("input should match one of %d alternatives", len(list)))
		return
	}
	for _, f := range fit {
		r.add(rep, f)
	}
}

// violations returns why a body that check has rejected does not fit.
func (r *run) violations(root *node) []misfit.Violation {
	tooMuch := misfit.Violation{
		Type: "value_error", Loc: []any{"body"}, Msg: "Value error, checking the whole body takes too much work: send less at a time", Input: json.RawMessage("null"),
	}
	if r.work < 0 {
		return []misfit.Violation{tooMuch}
	}
	r.work = r.base + reportWorkPerByte*len(r.tree.Values[0].Text)
	var rep report
	r.check(root, 0, &rep, nil)
	size := 0
	var list []misfit.Violation
	for i := range rep.found {
		v, n := r.violation(&rep.found[i])
		if size += n; size > maxReport {
			rep.more += len(rep.found) - i
			break
		}
		list = append(list, v)
	}
	rest := counted(rep.more, "more violation") + " not listed"
	switch {
	case r.work < 0 && len(list) == 0:
		return []misfit.Violation{tooMuch}
	case r.work < 0:
		rest = "the rest of the body was not checked"
	case rep.more == 0:
		return list
	}
	return append(list, misfit.Violation{Type: "too_many_violations", Loc: []any{"body"}, Msg: rest, Input: json.RawMessage("null")})
}

// violation returns a finding with its place and its input, and about how many bytes it takes.
func (r *run) violation(f *finding) (v misfit.Violation, size int) {
	v = misfit.Violation{Type: f.kind, Msg: f.msg, Ctx: f.ctx, Input: shortened(r.tree.Values[f.at].Text)}
	if near := text.Clip(r.meant(f), maxClip); near != "" {
		v.Msg += ": did you mean '" + near + "'?"
		v.Ctx = map[string]any{"did_you_mean": near}
	}
	size = 64 + 2*len(v.Msg) + len(v.Input)
	if f.isName {
		v.Loc = append(v.Loc, text.Clip(f.name, maxClip))
	}
	for at := f.at; at > 0; at = r.tree.Values[at].Parent {
		value := &r.tree.Values[at]
		if r.tree.Values[value.Parent].Kind == jsontree.Array {
			v.Loc = append(v.Loc, int(value.Index))
		} else {
			v.Loc = append(v.Loc, text.Clip(value.Key, maxClip))
			size += min(len(value.Key), maxClip)
		}
		size += 8
	}
	v.Loc = append(v.Loc, "body")
	slices.Reverse(v.Loc)
	return v, size
}

func unreadable(err error) error {
	var wrong *jsontree.SyntaxError
	errors.As(err, &wrong)
	return invalid("the body is not valid JSON", misfit.Violation{
		Type: "json_invalid", Loc: []any{"body", wrong.Offset}, Msg: "JSON decode error", Input: json.RawMessage("{}"),
		Ctx: map[string]any{"error": wrong.Msg},
	})
}

func notObject(text string) misfit.Violation {
	return misfit.Violation{
		Type: modelType, Loc: []any{"body"}, Msg: modelMsg,
		Input: shortened(strings.Trim(text, " \t\r\n")),
	}
}

// shortened returns the JSON of a value or, if that is long, a string with its beginning.
func shortened(value string) json.RawMessage {
	if len(value) <= maxInput {
		return json.RawMessage(value)
	}
	note := "... (" + strconv.Itoa(len(value)) + " bytes)"
	return json.RawMessage(jsontree.Quote(text.Prefix(value, maxClip) + note))
}

// counted returns "1 item" or "2 items".
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
