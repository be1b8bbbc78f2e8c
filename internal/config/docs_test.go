package config_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/configured"
)

// readDocs returns docs/configuration.md and its TOML examples.
func readDocs(t *testing.T) (text string, examples []string) {
	t.Helper()
	raw, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	text = strings.ReplaceAll(string(raw), "\r\n", "\n")
	for _, m := range regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllStringSubmatch(text, -1) {
		examples = append(examples, m[1])
	}
	if len(examples) < 2 {
		t.Fatalf("docs/configuration.md: got %d examples", len(examples))
	}
	return text, examples
}

// TestPagesConfigurations checks that the configurations in pages and examples are valid.
func TestPagesConfigurations(t *testing.T) {
	t.Parallel()
	block := regexp.MustCompile("(?ms)^```toml[^\n]*\n(.*?)^```")
	found := map[string]int{}
	for _, pattern := range []string{"../../docs/*.md", "../../examples/*/README.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range block.FindAllStringSubmatch(strings.ReplaceAll(string(raw), "\r\n", "\n"), -1) {
				found[pattern]++
				if _, err := config.Parse([]byte(m[1]), ""); err != nil {
					t.Errorf("%s:\n%s\n%v", file, m[1], err)
				}
			}
		}
		if found[pattern] < 10 {
			t.Errorf("%s: got %d configurations; is the pattern right?", pattern, found[pattern])
		}
	}
}

// TestServiceExample checks that the systemd unit creates the directories that its configuration in docs/operations.md names.
func TestServiceExample(t *testing.T) {
	t.Parallel()
	text := func(file string) string {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	unit, made := text("../../deploy/systemd/toolsrv.service"), text("../../deploy/systemd/tmpfiles.conf")
	block := regexp.MustCompile("(?s)```toml\n(.*?)```").FindStringSubmatch(text("../../docs/operations.md"))
	if block == nil {
		t.Fatal("docs/operations.md has no configuration of a service")
	}
	service, err := config.Parse([]byte(block[1]), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, pair := range []struct{ line, below, path string }{
		{"CacheDirectory=", "/var/cache/", service.Tools.CacheDir},
		{"StateDirectory=", "/var/lib/", service.State.Directory},
		{"LoadCredential=", "/run/credentials/toolsrv.service/", service.Auth.TokensFile},
	} {
		name, ok := strings.CutPrefix(pair.path, pair.below)
		if !ok || name == "" || !strings.Contains(unit, "\n"+pair.line+name) {
			t.Errorf("the unit has no line %s%s for the path %s", pair.line, name, pair.path)
		}
	}
	if !strings.Contains(made, " "+service.Tools.Directory+" ") {
		t.Errorf("tmpfiles.conf does not make %s", service.Tools.Directory)
	}
	if strings.Contains(unit, "\nMemoryDenyWriteExecute") {
		t.Error("the unit has MemoryDenyWriteExecute=, under which no server starts")
	}
}

// knownKeys gets all keys from Parse, which lists them in the error for a key that is unlike any.
func knownKeys(t *testing.T) (keys []string) {
	t.Helper()
	for _, table := range []string{"", "server.", "server.tls.", "tools.", "auth.", "auth.oidc.", "mcp.", "limits.", "secrets.", "state.", "admin.", "audit.", "rates.", "metrics.", "events.", "console.", "otlp."} {
		for _, name := range keysOf(t, table) {
			if name == "certificate" && table == "auth." {
				continue
			}
			switch table + name {
			case "server", "server.tls", "tools", "auth", "auth.token", "auth.oidc", "auth.oidc.rule", "mcp", "limits", "secrets", "state", "admin", "audit", "rates", "metrics", "events", "console", "otlp", "override", "grant", "source", "pin":
			default:
				keys = append(keys, table+name)
			}
		}
	}
	return keys
}

func TestDocsExamplesParse(t *testing.T) {
	t.Parallel()
	_, examples := readDocs(t)
	for _, example := range examples {
		if _, err := config.Parse([]byte(example), ""); err != nil {
			t.Errorf("%s\n%v", example, err)
		}
	}
}

// TestDocsMatches checks the table of patterns.
func TestDocsMatches(t *testing.T) {
	t.Parallel()
	text, _ := readDocs(t)
	code := regexp.MustCompile("`([^`]+)`")
	_, table, _ := strings.Cut(text, "| `match` | matches |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	tried := 0
	for row := range strings.SplitSeq(table, "\n") {
		cells := strings.Split(row, "|")
		if len(cells) < 4 || strings.HasPrefix(cells[1], "-") {
			continue
		}
		pattern := code.FindStringSubmatch(cells[1])[1]
		yes, no, _ := strings.Cut(cells[2], "but")
		c := parse(t, "[[override]]\nmatch = '"+pattern+"'\nqueue = 7\n")
		for _, m := range code.FindAllStringSubmatch(yes, -1) {
			path := "/" + m[1]
			if configured.Limits(c, path).Queue != 7 {
				t.Errorf("%q does not match %s", pattern, path)
			}
			tried++
		}
		for _, m := range code.FindAllStringSubmatch(no, -1) {
			path := "/" + m[1]
			if configured.Limits(c, path).Queue == 7 {
				t.Errorf("%q matches %s", pattern, path)
			}
			tried++
		}
	}
	if tried < 10 {
		t.Errorf("tried only %d paths: has the table moved?", tried)
	}
}

// TestDocsErrors checks that Parse gives the errors that the documentation shows.
func TestDocsErrors(t *testing.T) {
	t.Parallel()
	text, _ := readDocs(t)
	_, err := config.Parse([]byte(strings.Repeat("\n", 12)+"[limits]\ntimeot = '5s'\nmemory = '64M'\n"), "")
	if err == nil {
		t.Fatal("got nil")
	}
	if got := strings.ReplaceAll(err.Error(), "configuration:", "toolsrv.toml:"); !strings.Contains(text, got) {
		t.Errorf("the documentation does not show\n%s", got)
	}
}
