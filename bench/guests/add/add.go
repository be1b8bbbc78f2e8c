// Package add is what two guests have in common: the toolsrv tool and the Extism plugin of the same work.
package add

// Terms are the arguments.
type Terms struct {
	A float64 `json:"a"`
	B float64 `json:"b"`
}

// Sum returns the sum of both terms.
func Sum(in Terms) float64 { return in.A + in.B }
