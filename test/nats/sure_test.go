package nats_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestChangedElsewhere lets operators change on one server what was just changed on another: a server that does not know a new object yet
// must not treat it as missing, and must not mistake an old state for the present one.
func TestChangedElsewhere(t *testing.T) {
	t.Parallel()
	c := start(t, 3, nil)
	one, other := serve(t, c.url()), serve(t, c.url())
	operator, err := wasmtools.NewPrincipal("ann", "token", "*")
	if err == nil {
		operator, err = operator.WithRoles(wasmtools.RoleAdmin)
	}
	if err != nil {
		t.Fatal(err)
	}
	wrong := 0
	do := func(s *core.Service, name, arguments string, into any) {
		t.Helper()
		answer, err := operation(t, name).Run(t.Context(), &admin.Request{Target: &admin.Target{Service: s}, Principal: operator, Local: true}, []byte(arguments))
		if err != nil {
			wrong++
			t.Errorf("%s %s: %v", name, arguments, err)
			return
		}
		if into != nil {
			if err := json.Unmarshal(answer, into); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := 0; i < 30 && wrong < 5; i++ {
		name := fmt.Sprintf(`"name":"token%d"`, i)
		var made struct{ Token struct{ ID string } }
		do(one, "tokens add", `{`+name+`,"scopes":["a/*"]}`, &made)
		do(other, "tokens rotate", `{"name":"`+made.Token.ID+`"}`, nil)
		do(one, "tokens scopes", `{`+name+`,"scopes":["b/*"]}`, nil)
		var now struct{ Token struct{ Scopes []string } }
		do(other, "tokens scopes", `{`+name+`,"scopes":["a/*"]}`, &now) // with the version that the server knew
		do(one, "tokens rate", `{`+name+`,"rate":"7/s"}`, &now)
		if got := strings.Join(now.Token.Scopes, " "); got != "a/*" {
			t.Errorf("after another server has set the scopes, the answer has %q", got)
		}
		do(other, "tokens show", `{`+name+`}`, nil)
		do(one, "tokens revoke", `{`+name+`}`, nil)
		do(other, "tokens add", `{`+name+`}`, nil)
		do(one, "tokens revoke", `{`+name+`,"dry_run":true}`, nil)
		do(one, "tokens revoke", `{`+name+`}`, nil)

		do(one, "disable", `{"names":["math"]}`, nil)
		do(other, "reset", `{"names":["math"]}`, nil)
		do(one, "disable", `{"names":["math/add"]}`, nil)
		do(other, "reset", `{"names":["math/add"]}`, nil)

		do(one, "secrets set", `{"principal":"issued+ann","name":"key","value":"the-first-value-`+fmt.Sprint(i)+`"}`, nil)
		do(other, "secrets remove", `{"principal":"issued+ann","name":"key"}`, nil)
	}
}
