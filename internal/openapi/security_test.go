package openapi_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/toolsrv/toolsrv/internal/openapi"
	"github.com/toolsrv/toolsrv/wasmtools/auth"
)

// secured returns whether a document says that a token is needed. It must do so in all places or in none.
func secured(t *testing.T, document string) bool {
	t.Helper()
	var d struct {
		Security []map[string][]string
		Paths    map[string]struct {
			Post struct{ Responses map[string]any }
		}
		Components struct {
			Responses       map[string]any
			SecuritySchemes map[string]any
		}
	}
	if err := json.Unmarshal([]byte(document), &d); err != nil {
		t.Fatal(err)
	}
	says := []bool{len(d.Security) > 0, d.Components.Responses["Unauthorized"] != nil, d.Components.SecuritySchemes["bearer"] != nil}
	for _, item := range d.Paths {
		says = append(says, item.Post.Responses["401"] != nil)
	}
	for _, said := range says {
		if said != says[0] {
			t.Fatalf("security in some places only: %v in %s", says, document)
		}
	}
	return says[0]
}

// TestSecurityFollowsTokens checks that the document requires a token exactly while the service does.
func TestSecurityFollowsTokens(t *testing.T) {
	t.Parallel()
	tokens, err := auth.NewBearerTokenAuth(nil)
	if err != nil {
		t.Fatal(err)
	}
	app := appOf(t, tableOf(t, add(), order()), openapi.Options{Dependencies: []openapi.Dependency{auth.Dependency(tokens)}})
	tags := map[bool]string{}
	steps := []struct {
		name   string
		change func()
		want   bool
	}{
		{"no token", func() {}, false},
		{"the first token", func() { _ = tokens.AddToken("one") }, true},
		{"a second", func() { _ = tokens.AddToken("two") }, true},
		{"the second is gone", func() { tokens.RemoveToken("two") }, true},
		{"disabled", func() { tokens.SetEnabled(false) }, false},
		{"enabled", func() { tokens.SetEnabled(true) }, true},
		{"the last is gone", func() { tokens.RemoveToken("one") }, false},
		{"required", func() { tokens.SetRequired(true) }, true},
		{"required with a token", func() { _ = tokens.SetTokens([]string{"one"}) }, true},
		{"no longer required", func() { tokens.SetRequired(false); _ = tokens.SetTokens(nil) }, false},
		{"after Close", func() { _ = app.Close(); _ = tokens.AddToken("one") }, false},
	}
	for _, step := range steps {
		step.change()
		r := serve(app, get("/openapi.json", "Authorization", "Bearer one"))
		if r.StatusCode != http.StatusOK { // the document can't be read
			if step.name != "required" {
				t.Errorf("%s: got %d", step.name, r.StatusCode)
			}
			continue
		}
		document := bodyOf(t, r)
		if got := secured(t, document); got != step.want {
			t.Errorf("%s: the document asks for a token: %t, want %t", step.name, got, step.want)
		}
		validate(t, document)
		tag := r.Header.Get("ETag")
		if known, ok := tags[step.want]; ok && known != tag {
			t.Errorf("%s: the ETag is %s, want %s as before", step.name, tag, known)
		}
		tags[step.want] = tag
	}
	if tags[true] == tags[false] || len(tags) != 2 {
		t.Errorf("the ETags are %v, want one with security and another without", tags)
	}
}

// A counting dependency requires a token while its switch is on, and counts the calls of Schemes.
type counting struct {
	on    atomic.Bool
	asked atomic.Int64
	tell  func()
}

func (*counting) Check(*http.Request) error { return nil }
func (c *counting) Schemes() []auth.Scheme {
	if c.asked.Add(1); !c.on.Load() {
		return nil
	}
	return []auth.Scheme{{Name: "bearer", Description: json.RawMessage(`{"type":"http","scheme":"bearer"}`)}}
}
func (c *counting) Subscribe(changed func()) func() {
	c.tell = changed
	return func() {}
}

// TestSecurityIsNotBuiltPerRequest: requests rebuild nothing that depends only on the configuration.
func TestSecurityIsNotBuiltPerRequest(t *testing.T) {
	t.Parallel()
	c := &counting{}
	app := appOf(t, tableOf(t, add()), openapi.Options{Dependencies: []openapi.Dependency{c}})
	before := c.asked.Load()
	for range 10 {
		if secured(t, bodyOf(t, serve(app, get("/openapi.json")))) {
			t.Fatal("the document asks for a token")
		}
	}
	if got := c.asked.Load(); got != before {
		t.Errorf("10 requests asked %d times whether a token is required, want never", got-before)
	}
	c.on.Store(true)
	c.tell()
	if !secured(t, bodyOf(t, serve(app, get("/openapi.json")))) {
		t.Error("the document does not ask for a token")
	}
}

// TestSecurityUnderLoad changes tokens and tools while the document is read: it is consistent each time.
func TestSecurityUnderLoad(t *testing.T) {
	t.Parallel()
	c, table := &counting{}, tableOf(t, add(), order())
	app := appOf(t, table, openapi.Options{Dependencies: []openapi.Dependency{c}})
	var changes sync.WaitGroup
	changes.Go(func() {
		for i := range 200 {
			c.on.Store(i%2 == 0)
			c.tell()
		}
	})
	changes.Go(func() {
		for i := range 200 {
			if i%2 == 0 {
				_ = table.Disable("/math/add", "")
			} else {
				_ = table.Enable("/math/add")
			}
		}
	})
	for range 100 {
		secured(t, bodyOf(t, serve(app, get("/openapi.json"))))
	}
	changes.Wait()
	document := bodyOf(t, serve(app, get("/openapi.json")))
	if secured(t, document) || !strings.Contains(document, "/math/add") {
		t.Errorf("in the end: %s", document)
	}
}

func TestServers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		give []string
		want []string
	}{
		{"none", nil, nil},
		{"an address", []string{"https://example.com/tools"}, []string{"https://example.com/tools"}},
		{"a slash at the end", []string{"https://example.com/tools/", "https://example.com/"}, []string{"https://example.com/tools", "https://example.com"}},
		{"a prefix", []string{"/tools/"}, []string{"/tools"}},
		{"the root", []string{"/"}, []string{"/"}},
	} {
		app := appOf(t, tableOf(t, add()), openapi.Options{Servers: test.give})
		document := bodyOf(t, serve(app, get("/openapi.json")))
		validate(t, document)
		var got struct{ Servers []struct{ URL string } }
		if err := json.Unmarshal([]byte(document), &got); err != nil {
			t.Fatal(err)
		}
		var urls []string
		for _, s := range got.Servers {
			urls = append(urls, s.URL)
		}
		if !reflect.DeepEqual(urls, test.want) {
			t.Errorf("%s: got %q, want %q", test.name, urls, test.want)
		}
	}
}
