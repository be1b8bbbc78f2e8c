// Command toolsrv serves WebAssembly tools over REST and MCP.
package main

import (
	"io"
	"log"
	"os"

	"github.com/toolsrv/toolsrv/cmd/toolsrv/command"
)

func main() {
	// Our code does not use this logger, but libraries may, and they may quote an answer in which a server has repeated a secret.
	log.SetOutput(io.Discard)
	os.Exit(command.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
