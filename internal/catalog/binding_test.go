package catalog_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// never checks that the tool at a path doesn't give this answer in any generation until end is called.
func never(t *testing.T, c *catalog.Catalog, path, answer string) (end func()) {
	t.Helper()
	look := func(g *wasmtools.Generation) {
		if r, ok := g.Lookup(path); ok && call(t, r.Tool) == answer {
			t.Errorf("generation %d has %s of %s", g.Number(), path, r.Tool.Source)
		}
	}
	end = c.Table().Subscribe(look)
	look(c.Table().Current())
	return end
}

// TestStolenNamespace is an attack by somebody who can write to other sources and wants the path of a payments tool, which has grants. The attacker
// tries while the right file is present, removed, renamed or changed, while the configuration is reloaded, and at a start without the file.
// Proves: No tool takes another's place
func TestStolenNamespace(t *testing.T) {
	t.Parallel()
	a := newArea(t)
	bound, free := a.source("/acme", "right", "acme/x.wasm"), a.source("/free", "right", "free/x.wasm")
	pay := a.source("/pay", "right", "payments/send.wasm")
	a.bound["/acme"] = catalog.Sourced{Name: "acme", Namespaces: []string{"acme", "web"}}
	a.bound["/pay"] = catalog.Sourced{Name: "pay", Namespaces: []string{"payments"}}
	evil := version(t, "wrong", "payments", "send")
	steal := func() {
		bound.set("acme/y.wasm", evil, nil)
		free.set("payments/deep/y.wasm", evil, nil)
		bound.set("payments/send.wasm", version(t, "wrong", "", "send"), nil)
	}
	refused := func(c *catalog.Catalog) {
		t.Helper()
		await(t, c, "the refusals", func(g *wasmtools.Generation) bool {
			mine := reason(g, "/acme:acme/y.wasm (acme)")
			return mine == "has tools in the namespace payments, and its source acme may serve only acme, web and what is below: move it to another source, or extend the namespaces of its [[source]]" &&
				reason(g, "/acme:payments/send.wasm (acme)") == mine &&
				reason(g, "/free:payments/deep/y.wasm") == "has tools in the namespace payments, which only the source pay may serve: move it there, or give it another namespace"
		})
	}
	c := a.catalog(bound, free, pay)
	end := never(t, c, "/payments/send", "wrong")
	awaitTable(t, c, []string{"/acme/x", "/free/x", "/payments/send"}, nil)
	steal()
	refused(c)
	awaitAnswer(t, c, "/payments/send", "right")
	pay.remove("payments/send.wasm")
	await(t, c, "no tool of payments", func(g *wasmtools.Generation) bool { return slices.Equal(paths(g), []string{"/acme/x", "/free/x"}) })
	refused(c)
	pay.set("payments/other.wasm", version(t, "right", "", "send"), nil)
	awaitAnswer(t, c, "/payments/send", "right")
	pay.set("payments/other.wasm", []byte("no module"), nil)
	if err := c.Reconfigure(catalog.Configuration{}); err != nil {
		t.Fatal(err)
	}
	refused(c)
	bound.set("acme/x.wasm", evil, nil) // what x served stays
	await(t, c, "the refusal of x", func(g *wasmtools.Generation) bool { return reason(g, "/acme:acme/x.wasm (acme)") != "" })
	awaitAnswer(t, c, "/acme/x", "right")
	for _, source := range []string{"/acme", "/free"} {
		_, err := c.Check(t.Context(), catalog.FileID{SourceID: source, Name: "up.wasm"}, evil)
		if err == nil || !strings.Contains(err.Error(), "in the namespace payments") {
			t.Errorf("Check for %s: got %v", source, err)
		}
	}
	if _, err := c.Check(t.Context(), catalog.FileID{SourceID: "/pay", Name: "up.wasm"}, version(t, "right", "payments", "send")); err != nil && !strings.Contains(err.Error(), "is taken") {
		t.Error(err)
	}
	closeNow(t, c)
	end()

	away(pay)
	bound.set("acme/x.wasm", version(t, "right", "", "x"), nil)
	c = a.catalog(bound, free, pay)
	end = never(t, c, "/payments/send", "wrong")
	awaitTable(t, c, []string{"/acme/x", "/free/x"}, []string{"pay:. (pay)", "y.wasm (acme)", "send.wasm (acme)", "y.wasm"})
	refused(c)
	a.put(pay, "payments/send.wasm", "right")
	pay.remove("payments/other.wasm")
	back(pay)
	awaitAnswer(t, c, "/payments/send", "right")
	closeNow(t, c) // while calls can still be made
	end()
}

// TestBindings checks files in namespaces that their source may serve, files in other namespaces, and files of a source with a prefix.
func TestBindings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		namespaces       []string
		prefix           string
		file, says, tool string // the file, the namespace of its manifest, and the tool's path
		refused          string
	}{
		{"its own", []string{"acme"}, "", "x.wasm", "acme", "/acme/x", ""},
		{"below", []string{"acme"}, "", "x.wasm", "acme/web", "/acme/web/x", ""},
		{"the folder", []string{"acme"}, "", "acme/x.wasm", "", "/acme/x", ""},
		{"the same letters", []string{"acme"}, "", "x.wasm", "acme2", "", "in the namespace acme2, and its source s may serve only acme and what is below"},
		{"another case", []string{"acme"}, "", "x.wasm", "ACME", "", "in the namespace ACME,"},
		{"above", []string{"acme/web"}, "", "x.wasm", "acme", "", "in the namespace acme, and its source s may serve only acme/web and what is below"},
		{"none", []string{"acme"}, "", "x.wasm", "", "", "has tools without a namespace, and its source"},
		{"the name of a tool", []string{"x"}, "", "x.wasm", "", "", "has tools without a namespace"},
		{"none alone", []string{""}, "", "x.wasm", "", "/x", ""},
		{"the empty namespace alone does not mean all", []string{""}, "", "x.wasm", "acme", "", "may serve tools without a namespace only:"},
		{"none and one", []string{"", "b"}, "", "x.wasm", "acme", "", "may serve tools without a namespace and only b and what is below:"},
		{"any", nil, "", "x.wasm", "acme", "/acme/x", ""},
		{"namespace of another source", nil, "", "x.wasm", "other/y", "", "in the namespace other/y, which only the source other may serve"},
		{"a prefix", nil, "acme", "x.wasm", "web", "/acme/web/x", ""},
		{"a prefix before a folder", nil, "acme/v2", "web/x.wasm", "", "/acme/v2/web/x", ""},
		{"a prefix alone", []string{"acme"}, "acme", "x.wasm", "", "/acme/x", ""},
		{"a prefix before the name of another source's namespace", []string{"acme"}, "acme", "x.wasm", "other", "/acme/other/x", ""},
		{"a prefix that is another source's namespace", nil, "other", "x.wasm", "z", "", "in the namespace other/z, which only the source other may"},
		{"above another source's namespace", []string{"other", "acme"}, "", "x.wasm", "other/z", "/other/z/x", ""},
		{"below another source's namespace", []string{"top"}, "", "x.wasm", "top/sub/deep", "", "in the namespace top/sub/deep, which only the source other may"},
		{"beside another source's namespace", []string{"top"}, "", "x.wasm", "top/subs", "/top/subs/x", ""},
		{"own namespace below another source's", []string{"top", "top/sub/ours"}, "", "x.wasm", "top/sub/ours/x", "/top/sub/ours/x/x", ""},
		{"too long with the prefix", nil, strings.Repeat("a", 40), "x.wasm", strings.Repeat("b", 40), "", "at most"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := newArea(t)
			s, other := a.source("/s", ""), a.source("/other", "")
			a.bound["/s"] = catalog.Sourced{Name: "s", Namespaces: c.namespaces, Prefix: c.prefix}
			a.bound["/other"] = catalog.Sourced{Name: "other", Namespaces: []string{"other", "top/sub"}}
			s.set(c.file, version(t, "right", c.says, "x"), nil)
			of := a.catalog(s, other)
			if err := of.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			why := reason(of.Table().Current(), "/s:"+c.file+" (s)")
			if got := paths(of.Table().Current()); c.refused == "" && (why != "" || !slices.Equal(got, []string{c.tool})) || c.refused != "" && (got != nil || !strings.Contains(why, c.refused)) {
				t.Errorf("got %q, refused %q; want %q, %q", got, why, c.tool, c.refused)
			}
		})
	}
}

// TestDescribedElsewhere checks that a module is refused if only running it shows that the namespace of its tools is not its source's.
func TestDescribedElsewhere(t *testing.T) {
	t.Parallel()
	a := newArea(t)
	s := a.source("/s", "")
	a.bound["/s"] = catalog.Sourced{Namespaces: []string{"acme"}}
	s.set("a/x.wasm", testkit.Fixture(t, "catalog/described"), nil)
	s.set("acme/x.wasm", testkit.Fixture(t, "catalog/described"), nil)
	c := a.catalog(s)
	awaitTable(t, c, []string{"/acme/told"}, []string{"x.wasm"})
	if got := reason(c.Table().Current(), "/s:a/x.wasm"); !strings.Contains(got, "its source /s:. may serve only acme") {
		t.Errorf("got %q", got)
	}
	files, err := catalog.List(context.Background(), []catalog.Sourced{{Source: s, Namespaces: []string{"acme"}}})
	if err != nil || len(files) != 2 {
		t.Fatalf("List: got %v, %v", files, err)
	}
	for i, wrong := range []bool{true, false} {
		m, err := files[i].Load(t.Context(), a.engine)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if err := m.Describe(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := files[i].Check(m); (err != nil) != wrong {
			t.Errorf("%s: got %v", files[i].Name, err)
		}
	}
}
