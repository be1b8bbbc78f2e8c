// Package licenses has the licences of all parts of the program, for those who have nothing but the program.
package licenses

import (
	_ "embed"
	"fmt"
	"io"

	"github.com/toolsrv/toolsrv/internal/script/engine"
)

// modules begins with a list of all parts, which is the file NOTICE. After it come the licences of toolsrv, of Go and of each module.
//
//go:embed modules.txt
var modules string

// Write writes the list of all parts, and the licence of each.
func Write(w io.Writer) error {
	if _, err := io.WriteString(w, modules); err != nil {
		return err
	}
	engines := engine.Carried()
	list, err := engines.List()
	if err != nil {
		return err
	}
	for _, about := range list {
		text, err := engines.Licenses(about.Name)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s\nThe engine for %s, %s, contains:\n\n%s", Line, about.Name, about.Version, text); err != nil {
			return err
		}
	}
	return nil
}

// Line separates licences.
const Line = "\n================================================================================\n"
