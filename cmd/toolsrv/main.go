// Command toolsrv serves WebAssembly tools over REST and MCP.
package main

import (
	"os"

	"github.com/toolsrv/toolsrv/cmd/toolsrv/command"
)

func main() {
	os.Exit(command.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
