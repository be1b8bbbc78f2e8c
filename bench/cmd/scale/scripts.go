package main

import (
	"fmt"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/internal/script/engine"
)

// sources has a script for each engine. Each script has a tool that adds, and a %d, which a number replaces so that no two scripts are the same.
var sources = map[string]engine.File{
	"python": {Name: "add.py", Data: []byte(`from toolsrv import tool

NUMBER = %d

@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b
`)},
	"javascript": {Name: "add.js", Data: []byte(`import { tool } from "toolsrv";

const number = %d;

export const add = tool({
  description: "Add two numbers.",
  parameters: ` + guest.Parameters + `,
  run: ({ a, b }) => a + b,
});
`)},
}

// scripts makes tools of an engine in this binary.
func scripts(name string) (maker, error) {
	source, ok := sources[name]
	if !ok {
		return nil, fmt.Errorf("-engine: there is no script for %q", name)
	}
	e, err := engine.Carried().Open(name)
	if err != nil {
		return nil, err
	}
	return func(number int, name string) ([]byte, error) {
		module, err := e.Append([]engine.File{{Name: source.Name, Data: fmt.Appendf(nil, string(source.Data), number)}})
		if err != nil {
			return nil, err
		}
		return guest.Describe(module, guest.Parameters, name)
	}, nil
}
