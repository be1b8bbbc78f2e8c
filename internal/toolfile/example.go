package toolfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/invoker"
	"github.com/toolsrv/toolsrv/internal/jsontree"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/misfit"
)

// A Trial is the result of trying an example of a tool.
type Trial struct {
	// Path is the path of the tool, and Number the example's place in its list, from 1.
	Path   string `json:"path"`
	Number int    `json:"example"`
	// Arguments and Want are from the example; Want is nil if it has no result. Got is the actual result, or nil if the call failed.
	Arguments json.RawMessage `json:"arguments"`
	Want      json.RawMessage `json:"want,omitempty"`
	Got       json.RawMessage `json:"got,omitempty"`
	// Problem says what is wrong, or is empty.
	Problem string `json:"problem,omitempty"`
	// Err is why the call failed, or nil.
	Err error `json:"-"`
	// Took is how long the call took.
	Took time.Duration `json:"-"`
}

// TryExamples calls the tools with the arguments of their examples, in order, and passes each Trial to tell. A result must equal that of the example,
// as a JSON value, and fit the tool's result schema. TryExamples ends early if ctx does.
func (m *Module) TryExamples(ctx context.Context, tell func(Trial)) {
	v := invoker.New(invoker.Options{})
	for i, t := range m.tools {
		for n, example := range t.Examples {
			if ctx.Err() != nil {
				return
			}
			tell(m.try(ctx, v, i, n, example))
		}
	}
}

// try tries one example.
func (m *Module) try(ctx context.Context, v *invoker.Invoker, tool, number int, example wasmtools.Example) Trial {
	trial := Trial{Path: m.tools[tool].Path(), Number: number + 1, Arguments: example.Arguments, Want: example.Result}
	begun := time.Now()
	got, err := v.Call(ctx, invoker.RouteTo(m.tools[tool]), &wasmtools.Call{Arguments: example.Arguments, Principal: wasmtools.Self()})
	trial.Took = time.Since(begun)
	if err != nil {
		trial.Err, trial.Problem = err, problemOf(err)
		return trial
	}
	trial.Got = got
	if s := m.schemas[tool].result; s != nil {
		if err := s.Check(got); err != nil {
			trial.Problem = "the result does not fit its own schema" + violationsOf(err)
			return trial
		}
	}
	if example.Result != nil {
		trial.Problem = difference(got, example.Result)
	}
	return trial
}

// problemOf returns the error of a call as a sentence.
func problemOf(err error) string {
	failed, ok := errors.AsType[*wasmtools.Error](err)
	if !ok {
		return err.Error()
	}
	text := string(failed.Code) + ": " + failed.Message
	if failed.Message == "" {
		text = string(failed.Code)
	}
	return text + listed(failed.Violations)
}

// violationsOf returns a list of a value's violations of a schema, to be appended to a sentence.
func violationsOf(err error) string {
	misfit, ok := errors.AsType[*misfit.Error](err)
	if !ok {
		return ": " + err.Error()
	}
	return listed(misfit.Violations)
}

func listed(all []misfit.Violation) string {
	text := ""
	for i, v := range all {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		place := make([]string, 0, len(v.Loc))
		for _, step := range v.Loc[min(1, len(v.Loc)):] { // the first says "body"
			place = append(place, fmt.Sprint(step))
		}
		if len(place) == 0 {
			place = append(place, "(all)")
		}
		text += sep + strings.Join(place, ".") + ": " + v.Msg
	}
	return text
}

// difference says where a result differs from the expected one, both in JSON. It returns "" if they are the same value.
func difference(got, want []byte) string {
	var g, w jsontree.Tree
	if err := g.Read(string(got)); err != nil {
		return fmt.Sprintf("the result can't be compared: %v", err)
	}
	if err := w.Read(string(want)); err != nil {
		return fmt.Sprintf("the example's result can't be compared: %v", err)
	}
	if g.Canonical(0) == w.Canonical(0) {
		return ""
	}
	return differ(&g, &w, 0, 0, nil)
}

// differ says where two different values first differ.
func differ(g, w *jsontree.Tree, at, wanted int32, path []string) string {
	got, want := &g.Values[at], &w.Values[wanted]
	place := ""
	if len(path) > 0 {
		place = "at " + text.Short(strings.Join(path, ".")) + ": "
	}
	if got.Kind != want.Kind || got.Kind != jsontree.Array && got.Kind != jsontree.Object {
		return fmt.Sprintf("%sgot %s, want %s", place, text.Short(got.Text), text.Short(want.Text))
	}
	if got.Kind == jsontree.Array && got.Count != want.Count {
		return fmt.Sprintf("%sgot %d items, want %d", place, got.Count, want.Count)
	}
	others := map[string]int32{}
	for i := got.First; i != 0; i = g.Values[i].Next {
		others[keyOf(g, i)] = i
	}
	for i := want.First; i != 0; i = w.Values[i].Next {
		key := keyOf(w, i)
		other, ok := others[key]
		if !ok {
			return fmt.Sprintf("%s%q is missing", place, text.Short(key))
		}
		if g.Canonical(other) != w.Canonical(i) {
			return differ(g, w, other, i, append(path, key))
		}
		delete(others, key)
	}
	// All expected members are there, so there must be an unexpected one.
	return fmt.Sprintf("%s%q is unexpected", place, text.Short(slices.Min(slices.Collect(maps.Keys(others)))))
}

// keyOf returns the name of a member, or the index of an item.
func keyOf(t *jsontree.Tree, i int32) string {
	if v := &t.Values[i]; t.Values[v.Parent].Kind == jsontree.Object {
		return v.Key
	}
	return strconv.Itoa(int(t.Values[i].Index))
}
