package hostcall_test

import (
	"slices"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
)

// origins are a grant that Go can't compare with ==.
type origins []string

func (o origins) Equal(other any) bool {
	p, ok := other.(origins)
	return ok && slices.Equal(o, p)
}

func TestGrantEqual(t *testing.T) {
	t.Parallel()
	one, same := new(int), hostcall.Grant{Module: "a", Value: origins{"x", "y"}}
	for _, test := range []struct {
		name string
		a, b hostcall.Grant
		want bool
	}{
		{"comparable values", hostcall.Grant{Module: "a", Value: 7}, hostcall.Grant{Module: "a", Value: 7}, true},
		{"other values", hostcall.Grant{Module: "a", Value: 7}, hostcall.Grant{Module: "a", Value: 8}, false},
		{"other modules", hostcall.Grant{Module: "a", Value: 7}, hostcall.Grant{Module: "b", Value: 7}, false},
		{"one pointer", hostcall.Grant{Module: "a", Value: one}, hostcall.Grant{Module: "a", Value: one}, true},
		{"two pointers", hostcall.Grant{Module: "a", Value: one}, hostcall.Grant{Module: "a", Value: new(int)}, false},
		{"equal by their method", same, hostcall.Grant{Module: "a", Value: origins{"x", "y"}}, true},
		{"unequal by their method", same, hostcall.Grant{Module: "a", Value: origins{"x"}}, false},
		{"values of two types", same, hostcall.Grant{Module: "a", Value: 7}, false},
		{"values that Go can't compare", hostcall.Grant{Module: "a", Value: map[string]int{"x": 1}}, hostcall.Grant{Module: "a", Value: map[string]int{"x": 1}}, true},
		{"different values that Go can't compare", hostcall.Grant{Module: "a", Value: map[string]int{"x": 1}}, hostcall.Grant{Module: "a", Value: map[string]int{"x": 2}}, false},
		{"a value that Go can't compare, and one that it can", hostcall.Grant{Module: "a", Value: map[string]int{"x": 1}}, hostcall.Grant{Module: "a", Value: 7}, false},
		{"no value", hostcall.Grant{Module: "a"}, hostcall.Grant{Module: "a", Value: map[string]int{}}, false},
		{"values of two types, in the other order", hostcall.Grant{Module: "a", Value: 7}, same, false},
	} {
		if got := test.a.Equal(test.b); got != test.want {
			t.Errorf("%s: got %t", test.name, got)
		}
	}
}
