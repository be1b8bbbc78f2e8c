package hostabi_test

import (
	"slices"
	"testing"

	"github.com/toolsrv/toolsrv/runtime/hostabi"
)

// origins are a grant that Go can't compare.
type origins []string

func (o origins) Equal(other any) bool {
	p, ok := other.(origins)
	return ok && slices.Equal(o, p)
}

func TestGrantEqual(t *testing.T) {
	t.Parallel()
	one, same := new(int), hostabi.Grant{Module: "a", Value: origins{"x", "y"}}
	for _, test := range []struct {
		name string
		a, b hostabi.Grant
		want bool
	}{
		{"comparable values", hostabi.Grant{Module: "a", Value: 7}, hostabi.Grant{Module: "a", Value: 7}, true},
		{"other values", hostabi.Grant{Module: "a", Value: 7}, hostabi.Grant{Module: "a", Value: 8}, false},
		{"other modules", hostabi.Grant{Module: "a", Value: 7}, hostabi.Grant{Module: "b", Value: 7}, false},
		{"one pointer", hostabi.Grant{Module: "a", Value: one}, hostabi.Grant{Module: "a", Value: one}, true},
		{"two pointers", hostabi.Grant{Module: "a", Value: one}, hostabi.Grant{Module: "a", Value: new(int)}, false},
		{"by their method", same, hostabi.Grant{Module: "a", Value: origins{"x", "y"}}, true},
		{"unequal by their method", same, hostabi.Grant{Module: "a", Value: origins{"x"}}, false},
		{"of two types", same, hostabi.Grant{Module: "a", Value: 7}, false},
		{"of two types, the other way", hostabi.Grant{Module: "a", Value: 7}, same, false},
	} {
		if got := test.a.Equal(test.b); got != test.want {
			t.Errorf("%s: got %t", test.name, got)
		}
	}
}
