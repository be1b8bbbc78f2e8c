package command_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/cmd/toolsrv/command"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
)

// TestMain makes the commands keep compiled code in a folder of the tests. The go command keeps using its own cache. If a command starts this
// program to compile a module or to read a script, TestMain does that instead of running tests.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "compile-module" || os.Args[1] == "collect-script") {
		os.Exit(command.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(func() int {
		user, err := os.UserCacheDir()
		if err != nil {
			return m.Run() // without a cache directory, there is no go cache to preserve
		}
		own, err := os.MkdirTemp("", "toolsrv-test-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(own)
		if err := sandboxtest.ShareCode(own); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		set := map[string]string{"XDG_CACHE_HOME": own, "TOOLSRV_TOKEN": adminToken}
		if os.Getenv("GOCACHE") == "" {
			set["GOCACHE"] = filepath.Join(user, "go-build")
		}
		for name, value := range set {
			if err := os.Setenv(name, value); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
		return m.Run()
	}())
}

// runWith is run with a text on standard input.
func runWith(stdin string, args ...string) (code int, stdout, stderr string) {
	var out, err strings.Builder
	code = command.Main(args, strings.NewReader(stdin), &out, &err)
	return code, out.String(), err.String()
}

// outcomes are the tools of testdata/e2e/guest.wat in the order of its table: one for each way in which a call can end.
var outcomes = []string{"echo", "refuse", "reject", "trap", "spin", "recurse", "grow", "garble", "silent", "wait"}

// manifestOf returns a manifest of tools with these names, which take an item and a count that is 1 by default.
func manifestOf(namespace string, tools ...string) string {
	var list []string
	for _, name := range tools {
		list = append(list, fmt.Sprintf(`{"name":%q,"description":"Does %s.\nIn lines.","parameters":{"type":"object",`+
			`"properties":{"item":{"type":"string"},"count":{"type":"integer","minimum":1,"default":1}},"required":["item"],"additionalProperties":false}}`, name, name))
	}
	return fmt.Sprintf(`{"abi":1,"namespace":%q,"version":"1.2.3","sdk":"wat/1","tools":[%s]}`, namespace, strings.Join(list, ","))
}

// shop writes a file with a tool for each outcome, and returns its path.
func shop(t testing.TB) string {
	t.Helper()
	return testkit.Put(t, t.TempDir(), "shop.wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "e2e/guest"), manifestOf("shop", outcomes...)))
}
