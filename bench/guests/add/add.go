// Package add is shared by two guests that do the same work: a toolsrv tool and an Extism plugin.
package add

// Terms are the arguments.
type Terms struct {
	A float64 `json:"a"`
	B float64 `json:"b"`
}

// Sum returns the sum of both terms.
func Sum(in Terms) float64 { return in.A + in.B }
