package command

import (
	"fmt"
	"strings"

	"github.com/toolsrv/toolsrv/internal/author/project"
)

// welcome returns a text for people who typed no command: what they can type in this folder. It fits on a screen.
func welcome(dir string) string {
	p, err := findFolder(dir)
	here := dir
	if err == nil && p.folder != "" {
		here = p.folder
	}
	tools, others := toolFiles(here)
	var b strings.Builder
	next := func(says string, commands ...[2]string) {
		b.WriteString(says + "\n\n")
		for _, c := range commands {
			fmt.Fprintf(&b, "  %-24s%s\n", c[0], c[1])
		}
		b.WriteString("\n")
	}
	up := [2]string{"toolsrv up", "serve it, and say how to call each tool"}
	found, projectErr := project.Open(dir)
	b.WriteString("toolsrv serves tools to programs and to language-model agents.\n")
	switch {
	case err == nil && p.config != "":
		next("This folder has a toolsrv.toml. To go on:", up,
			[2]string{"toolsrv new NAME", "make a project for another tool"},
			[2]string{"toolsrv openapi", "serve it to others"})
	case err == nil && projectErr == nil && found.Script == "":
		next("This folder has the source of a tool in "+string(found.Language)+". To go on:",
			[2]string{"toolsrv dev", "build and serve it, and again at every change"},
			[2]string{"toolsrv build", "make its .wasm file"})
	case err == nil && len(tools) > 0:
		up[1] = "serve them and say how to call each"
		next("This folder has files with tools: "+few(tools)+". To go on:", up,
			[2]string{"toolsrv mcp --help", "give them to an agent that starts toolsrv itself"})
	case err == nil && others == 0:
		next("This folder is empty. To begin:",
			[2]string{"toolsrv init", "make a first tool in Python, and a configuration"}, up)
	default:
		next("To begin:",
			[2]string{"toolsrv init DIR", "make a folder with a first tool in Python, and a configuration"},
			[2]string{"toolsrv up DIR", "serve a folder of scripts and .wasm files"},
			[2]string{"toolsrv new NAME", "make a project for a tool in Go, Rust, Python or JavaScript"},
			[2]string{"toolsrv openapi", "serve a configuration to others"},
			[2]string{"toolsrv mcp", "serve an agent that starts toolsrv itself"})
	}
	b.WriteString("Run 'toolsrv --help' for all commands.\n")
	return b.String()
}
