package config_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/toolsrv/toolsrv/internal/configured"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

// TestSources has tools.directory be the short form of one source, and the default only where there is no other.
func TestSources(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]config.Source{
		"":                                    {{Directory: "/etc/tools"}},
		"[tools]\nscripts = true":             {{Directory: "/etc/tools", Scripts: true}},
		"[[source]]\ndirectory = '/srv/acme'": {{Directory: "/srv/acme"}},
		"[tools]\nscripts = true\n[[source]]\ndirectory = 'acme'\n[[source]]\ndirectory = '../b'\nscripts = true": {{Directory: "/etc/acme"}, {Directory: "/b", Scripts: true}},
		"[[source]]\ndirectory = 'acme'\n[tools]\ndirectory = 'tools'":                                            {{Directory: "/etc/tools"}, {Directory: "/etc/acme"}},
	} {
		c, err := config.Parse([]byte(text), "/etc")
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := configured.Sources(c); !slices.Equal(got, want) {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
	}
}

// TestSourcesNeedRestart makes a reload tell of sources that have changed.
func TestSourcesNeedRestart(t *testing.T) {
	t.Parallel()
	before, now := parse(t, "[[source]]\ndirectory = '/a'"), parse(t, "[[source]]\ndirectory = '/a'\nscripts = true")
	if got := configured.NeedRestart(before, now); !reflect.DeepEqual(got, []string{"source"}) {
		t.Errorf("got %q", got)
	}
	if got := configured.NeedRestart(now, now); got != nil {
		t.Errorf("the same: got %q", got)
	}
}
