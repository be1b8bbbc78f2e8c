// Command toolsrv serves WebAssembly tools over REST and MCP.
package main

import (
	"io"
	"log"
	"os"

	"github.com/toolsrv/toolsrv/cmd/toolsrv/command"
)

func main() {
	// Nothing of ours logs there, but libraries may: what they quote of a server's answer can be a secret that it was sent.
	log.SetOutput(io.Discard)
	os.Exit(command.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
