package admin

import (
	"context"
	"runtime/pprof"
	"strings"
)

// Goroutines is what a server's goroutines do at one moment.
type Goroutines struct {
	Stacks string `json:"stacks" description:"The stacks of all goroutines, as Go prints them."`
}

func goroutines() Operation {
	o := Looks("goroutines", "Print the stacks of all goroutines", func(context.Context, *Request, struct{}) (Goroutines, error) {
		var b strings.Builder
		err := pprof.Lookup("goroutine").WriteTo(&b, 2)
		return Goroutines{b.String()}, err
	})
	o.Local = true // stacks show addresses, and paths of the machine that built the program
	return o
}
