// Package config reads the configuration of a server that a program embeds: a file, or text that the program writes. docs/configuration.md
// describes it.
package config

import (
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
)

// A Config says what a server serves, where, to whom and with which limits. [Load] and [Parse] make one. It never changes, and is safe for
// concurrent use.
type Config config.Handle

// Load reads the file at path, and the files with tokens that it names. Paths in it are relative to its folder. An error names the file,
// the line, the key, and what is allowed. It never contains a token. capabilities are the program's own.
func Load(path string, capabilities ...capability.Kind) (*Config, error) {
	c, err := config.Opaque(config.Load(path, capabilities...))
	return (*Config)(c), err
}

// Parse does what Load does, for a file in directory with this text, such as "server.address = '127.0.0.1:0'". A nil text means that
// everything has its default. A program writes strings that it does not know with key.Quote.
func Parse(text []byte, directory string, capabilities ...capability.Kind) (*Config, error) {
	c, err := config.Opaque(config.Read("configuration", text, directory, capabilities))
	return (*Config)(c), err
}
