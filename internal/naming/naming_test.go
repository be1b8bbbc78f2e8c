package naming_test

import (
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/naming"
)

func TestCheckName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		ok   bool
	}{
		{"a", true},
		{"A-z_09", true},
		{"-", true},
		{strings.Repeat("a", 64), true},
		{strings.Repeat("a", 65), false},
		{"", false},
		{"a b", false},
		{"a/b", false},
		{"a.b", false},
		{"a\n", false},
		{"a\x00", false},
		{":a", false},
		{"*", false},
		{"ä", false},
		{"\xff", false},
		{"%2e", false},
	} {
		err := naming.CheckName(c.name)
		if (err == nil) != c.ok {
			t.Errorf("%q: got %v, want ok %v", c.name, err, c.ok)
		}
		if err != nil && (len(err.Error()) > 250 || strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' || r > '~' && r != 'ä' })) {
			t.Errorf("%q: the error %q could break a log", c.name, err)
		}
	}
}

func TestCheckNamespace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		namespace string
		ok        bool
	}{
		{"", true},
		{"math", true},
		{"math/basic/x-1", true},
		{strings.Repeat("a", 64) + "/" + strings.Repeat("b", 64), true},
		{"/math", false},
		{"math/", false},
		{"a//b", false},
		{"/", false},
		{"..", false},
		{"a/../b", false},
		{"a\\b", false},
		{strings.Repeat("a", 65), false},
	} {
		err := naming.CheckNamespace(c.namespace)
		if (err == nil) != c.ok {
			t.Errorf("%q: got %v, want ok %v", c.namespace, err, c.ok)
		}
	}
}
