package openapi

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// TestDocumentsAreBuiltOnce requests the same documents many times at once, before they exist: the documents of 10,000 tools take 20 MB each.
func TestDocumentsAreBuiltOnce(t *testing.T) {
	t.Parallel()
	var tools []*wasmtools.Tool
	for i := range 500 {
		tools = append(tools, &wasmtools.Tool{
			Namespace: "some", Name: fmt.Sprintf("tool%d", i), Description: "Does it.", Parameters: schema.MustCompile(`{"type":"object"}`),
			Caller: wasmtools.CallerFunc(func(context.Context, *wasmtools.Call) ([]byte, error) { return []byte("1"), nil }),
		})
	}
	table, err := wasmtools.NewRouteTable(tools...)
	if err != nil {
		t.Fatal(err)
	}
	d := NewDoor(web.NewMux(web.Options{}), table, DoorOptions{})
	defer d.Close()
	s := d.made.Current()
	var all [16]documents
	begin := make(chan struct{})
	var asking sync.WaitGroup
	for i := range all {
		p, err := wasmtools.NewPrincipal(fmt.Sprint("caller", i), "test", "some/*")
		if err != nil {
			t.Fatal(err)
		}
		asking.Go(func() {
			<-begin
			all[i] = s.documentsFor(p)
		})
	}
	close(begin)
	asking.Wait()
	for i := range all {
		if all[i] != all[0] {
			t.Fatalf("caller %d got documents that were built a second time", i)
		}
	}
}

// TestNamespacesAreKept checks that each document is made once, within the bound on what is kept.
func TestNamespacesAreKept(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("runs on one goroutine, so the race detector would find nothing")
	}
	var tools []*wasmtools.Tool
	for i := range 100 {
		tools = append(tools, &wasmtools.Tool{
			Namespace: fmt.Sprintf("n%d", i), Name: "tool", Description: "Does it.", Parameters: schema.MustCompile(`{"type":"object"}`),
			Caller: wasmtools.CallerFunc(func(context.Context, *wasmtools.Call) ([]byte, error) { return []byte("1"), nil }),
		})
	}
	table, err := wasmtools.NewRouteTable(tools...)
	if err != nil {
		t.Fatal(err)
	}
	d := NewDoor(web.NewMux(web.Options{}), table, DoorOptions{})
	defer d.Close()
	s := d.made.Current()
	if first := s.documentOf("/n1", wasmtools.Everybody()); first == nil || first != s.documentOf("/n1", wasmtools.Everybody()) {
		t.Error("a document was made twice")
	}
	for i := range 200 {
		p, err := wasmtools.NewPrincipal("caller", "test", fmt.Sprintf("x%d", i), "*/tool")
		if err != nil {
			t.Fatal(err)
		}
		for n := range 100 {
			if s.documentOf(fmt.Sprintf("/n%d", n), p) == nil {
				t.Fatal("there is none")
			}
		}
		if l := s.library.Load(); len(l.byNamespace) > maxDocuments*len(tools) {
			t.Fatalf("%d documents are kept", len(l.byNamespace))
		}
	}
}

// TestDescriptionsFollowChanges counts how many tools are described again after a change, among few and among many, and how often the router is made.
func TestDescriptionsFollowChanges(t *testing.T) {
	t.Parallel()
	newTool := func(n int, description string) *wasmtools.Tool {
		return &wasmtools.Tool{
			Namespace: fmt.Sprintf("n%d", n), Name: "tool", Description: description, Parameters: schema.MustCompile(`{"type":"object"}`),
			Caller: wasmtools.CallerFunc(func(context.Context, *wasmtools.Call) ([]byte, error) { return []byte("1"), nil }),
		}
	}
	for _, many := range []int{100, 1000} {
		var tools []*wasmtools.Tool
		for n := range many {
			tools = append(tools, newTool(n, "Does it."))
		}
		table, err := wasmtools.NewRouteTable(tools...)
		if err != nil {
			t.Fatal(err)
		}
		d := NewDoor(web.NewMux(web.Options{}), table, DoorOptions{})
		defer d.Close()
		for _, step := range []struct {
			name   string
			change func() error
			made   int
			router bool
		}{
			{"one is replaced", func() error { tools[5] = newTool(5, "Does it now."); return table.Replace(tools, nil) }, 1, false},
			{"one has come", func() error { tools = append(tools, newTool(many, "Is new.")); return table.Replace(tools, nil) }, 1, true},
			{"one tool is switched off", func() error { return table.Disable("/n7/tool", "") }, 0, false},
			{"none has changed", func() error { return table.Replace(tools, nil) }, 0, false},
		} {
			before, router := map[*entry]bool{}, d.made.Current().router
			for _, e := range d.made.Current().entries {
				before[e] = true
			}
			if err := step.change(); err != nil {
				t.Fatal(err)
			}
			made := 0
			for _, e := range d.made.Current().entries {
				if !before[e] {
					made++
				}
			}
			if other := d.made.Current().router != router; made != step.made || other != step.router {
				t.Errorf("%d tools, %s: %d were described again, and another router was made: %t; want %d and %t", many, step.name, made, other, step.made, step.router)
			}
		}
	}
}
