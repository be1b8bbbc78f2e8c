package command_test

import (
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/cmd/toolsrv/command"
)

// run calls Main, and returns the exit code and the output.
func run(args ...string) (code int, stdout, stderr string) {
	var out, err strings.Builder
	code = command.Main(args, strings.NewReader(""), &out, &err)
	return code, out.String(), err.String()
}

// TestHelp checks that every command of our own has examples that begin with its name.
func TestHelp(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bench", "build", "call", "check", "dev", "init", "inspect", "licenses", "mcp", "new", "openapi", "pack", "test", "up"} {
		code, stdout, stderr := run(name, "--help")
		if code != 0 || stderr != "" || !strings.Contains(stdout, "Examples:\n  toolsrv "+name) || !strings.Contains(stdout, "Usage:\n  toolsrv "+name) {
			t.Errorf("%s: exit code %d, standard output %q, standard error %q", name, code, stdout, stderr)
		}
		long, _, _ := strings.Cut(stdout, "Usage:")
		for line := range strings.Lines(long) {
			if len(line) > 100 {
				t.Errorf("%s: a line of %d bytes: %s", name, len(line), line)
			}
		}
	}
}

func TestMainUsage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		args   []string
		code   int
		stdout string // a part of the output; if empty, there must be no output
		stderr string
	}{
		{"no command", nil, 2, "", "toolsrv serves tools to programs"},
		{"unknown command", []string{"publish"}, 2, "", `unknown command "publish" for toolsrv: it has audit, bench, `},
		{"a name from other servers", []string{"server"}, 2, "", `unknown command "server" for toolsrv: toolsrv up serves a folder while you work on it, and toolsrv openapi (or serve) `},
		{"the other name for openapi", []string{"serve", "--help"}, 0, "Aliases:\n  openapi, serve\n", ""},
		{"and its mistakes", []string{"serve", "tools"}, 2, "", `unexpected argument "tools": toolsrv openapi takes flags only; toolsrv up serves a folder or files`},
		{"list, as in other programs", []string{"list"}, 2, "", `unknown command "list" for toolsrv: inspect FILE shows the tools of a file`},
		{"and with flags", []string{"run", "--config", "x"}, 2, "", `unknown command "run" for toolsrv: toolsrv up `},
		{"misspelled command", []string{"verson"}, 2, "", "did you mean version?"},
		{"unknown flag of root", []string{"--config", "x"}, 2, "", "unknown flag: --config: flags come after a command, as in toolsrv openapi --config toolsrv.toml\n"},
		{"misspelled flag", []string{"up", "--adress", "x"}, 2, "", "unknown flag: --adress; did you mean --address?\n"},
		{"a flag's name from other servers", []string{"up", "--port", "9000"}, 2, "", "unknown flag: --port; did you mean --address?\n"},
		{"a flag's letter from other servers", []string{"openapi", "-p", "9000"}, 2, "", "unknown shorthand flag: 'p' in -p; did you mean --address?\n"},
		{"a flag of another command", []string{"init", "--server", "x"}, 2, "", "unknown flag: --server: toolsrv init has --help, --lang\n"},
		{"a flag for a group of commands", []string{"tokens", "--server", "x"}, 2, "", "unknown flag: --server: toolsrv tokens has --help\n"},
		{"command in capitals", []string{"UP"}, 2, "", `unknown command "UP" for toolsrv; did you mean up?`},
		{"help", []string{"--help"}, 0, "Exit codes", ""},
		{"help command", []string{"help", "openapi"}, 0, "--auth-tokens-file", ""},
		{"help for an unknown command", []string{"help", "start"}, 2, "", `unknown command "start" for toolsrv: toolsrv up `},
		{"help for openapi's other name", []string{"help", "serve"}, 0, "--auth-tokens-file", ""},
		{"help with too many words", []string{"help", "version", "it"}, 2, "", `unexpected argument "it": toolsrv version has no subcommands`},
		{"help for a command", []string{"openapi", "-h"}, 0, "SIGHUP", ""},
		{"completion", []string{"completion", "bash"}, 0, "toolsrv", ""},
		{"completion for an unknown shell", []string{"completion", "dos"}, 2, "", `unknown command "dos" for toolsrv completion: it has bash, fish, `},
		{"completion of none", []string{"completion"}, 2, "", "the command is missing: toolsrv completion has bash, "},
		{"an unknown level", []string{"openapi", "--log-level", "loud"}, 2, "", `invalid argument "loud" for "--log-level" flag: choose debug, info, warn or error`},
		{"a word in place of a number", []string{"tokens", "add", "x", "--burst", "many"}, 2, "", `invalid argument "many" for "--burst" flag: write a whole number` + "\n"},
		{"a number that is too large", []string{"logs", "--last", "99999999999999999999"}, 2, "", `for "--last" flag: the number is too large`},
		{"more lines than there are", []string{"logs", "--last", "1001"}, 2, "", "--last is 1001: give 1 to 1000"},
		{"no events", []string{"events", "--last", "0"}, 2, "", "--last is 0: give 1 to 1000"},
		{"a word in place of true or false", []string{"tools", "--all=maybe"}, 2, "", `for "--all" flag: write true or false`},
		{"a rate that is empty", []string{"tokens", "rate", "x", "--rate", ""}, 2, "", `for "--rate" flag: it is empty: give a value, or leave the flag out`},
		{"a secret without a name", []string{"secrets", "remove"}, 2, "", "name one secret, as in toolsrv secrets remove github"},
		{"a token without a name", []string{"tokens", "add"}, 2, "", "name one token, as in toolsrv tokens add ci"},
		{"an empty level", []string{"call", "x.wasm", "--log-level", ""}, 2, "", `"--log-level" flag: choose debug`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := run(c.args...)
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if !strings.Contains(stdout, c.stdout) || (c.stdout == "") != (stdout == "") {
				t.Errorf("standard output %q, want %q", stdout, c.stdout)
			}
			if !strings.Contains(stderr, c.stderr) || (c.stderr == "") != (stderr == "") {
				t.Errorf("standard error %q, want %q", stderr, c.stderr)
			}
			if c.code == 2 && !strings.Contains(stderr, "--help") {
				t.Errorf("standard error %q does not say where help is", stderr)
			}
		})
	}
}
