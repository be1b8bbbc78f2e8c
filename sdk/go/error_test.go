package toolsrv_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
)

// posing is an error whose method As makes it pass for a *toolsrv.Error.
type posing struct{ code string }

func (e posing) Error() string { return "posing" }

func (e posing) As(target any) bool {
	to, ok := target.(**toolsrv.Error)
	if ok {
		*to = &toolsrv.Error{Code: e.code}
	}
	return ok
}

// TestAsType checks that AsType finds exactly what errors.As finds, in every tree of errors.
func TestAsType(t *testing.T) {
	t.Parallel()
	a, b := &toolsrv.Error{Code: "a"}, &toolsrv.Error{Code: "b"}
	path := &fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}
	for name, err := range map[string]error{
		"nil":                  nil,
		"it":                   a,
		"another":              path,
		"nil that is not nil":  (*toolsrv.Error)(nil),
		"wrapped":              fmt.Errorf("1: %w", fmt.Errorf("2: %w", a)),
		"wraps nothing":        fmt.Errorf("%d", 1),
		"wraps nil":            fmt.Errorf("%w", error(nil)),
		"joined":               errors.Join(path, a, b),
		"joined of others":     errors.Join(path, errors.New("x")),
		"depth before breadth": errors.Join(fmt.Errorf("1: %w", errors.Join(path, b)), a),
		"two wrapped":          fmt.Errorf("%w and %w", path, a),
		"below another":        &fs.PathError{Err: a},
		"poses":                posing{"c"},
		"poses within":         errors.Join(errors.New("x"), fmt.Errorf("%w", posing{"c"}), a),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sameAs[*toolsrv.Error](t, err)
			sameAs[*fs.PathError](t, err)
			sameAs[posing](t, err)
			sameAs[interface {
				error
				Timeout() bool
			}](t, err)
		})
	}
}

func sameAs[E error](t *testing.T, err error) {
	t.Helper()
	var want E
	found := errors.As(err, &want)
	got, ok := toolsrv.AsType[E](err)
	wantText, gotText := fmt.Sprintf("%#v", want), fmt.Sprintf("%#v", got)
	if poser := (posing{}); ok && errors.As(err, &poser) { // which makes a new one each time
		wantText, gotText = want.Error(), got.Error()
	}
	if ok != found || gotText != wantText {
		t.Errorf("%T: got %s, %t, want %s, %t, as errors.As has it", want, gotText, ok, wantText, found)
	}
}
