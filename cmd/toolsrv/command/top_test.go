package command_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestTop makes calls, and checks that they are counted when the ten seconds in which they were made are over.
func TestTop(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: not with -short")
	}
	t.Parallel()
	m := manage(t, "")
	if got := m.must(t, "top"); got != "No tool was called in the last hour.\n" {
		t.Errorf("before: got %q", got)
	}
	for _, tool := range []string{"echo", "echo", "echo", "refuse"} {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.url+"/shop/"+tool, strings.NewReader(`{"item":"tea"}`))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Authorization", "Bearer "+adminToken)
		answer, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
	}
	var got admin.Top
	testkit.Until(t, "the calls to be counted", func() bool {
		if err := json.Unmarshal([]byte(m.must(t, "top", "--json", "--steps", "360")), &got); err != nil {
			t.Fatal(err)
		}
		return len(got.Tools) == 2
	})
	first, second := got.Tools[0], got.Tools[1]
	if first.Tool != "/shop/echo" || first.Hour.Calls != 3 || first.Hour.Failed != 0 || len(first.Steps) != 360 || second.Tool != "/shop/refuse" || second.Hour.Calls != 1 || second.Hour.Failed != 1 {
		t.Errorf("got %.300v and %.300v", first, second)
	}
	var fuel uint64
	for _, step := range first.Steps {
		fuel += step.Fuel
	}
	if fuel == 0 || first.Hour.Fuel != fuel || first.Minute.Fuel != fuel {
		t.Errorf("the steps burned %d of fuel, the minute %d, the hour %d", fuel, first.Minute.Fuel, first.Hour.Fuel)
	}
	if all := m.must(t, "top", "shop/echo"); !strings.Contains(all, "/shop/echo") || strings.Contains(all, "refuse") || !strings.Contains(all, "CALLS/S") || !strings.Contains(all, "FUEL/S") {
		t.Errorf("got %s", all)
	}
}
