package admin

import (
	"context"
	"strings"
	"time"
)

// Refusals says what a server does not serve, and why.
type Refusals struct {
	Refused []Refusal `json:"refused" description:"Files and folders by location, and then tools by path."`
}

// A Refusal is a file, folder or tool that is not served in its present form.
type Refusal struct {
	What   string    `json:"what" description:"The location of the file or folder, or the tool's path."`
	Kind   string    `json:"kind" enum:"file,tool" description:"Whether this is a file (or folder), or a tool."`
	Reason string    `json:"reason" description:"Why it is refused, or what the tool needs but was not granted."`
	Since  time.Time `json:"since,omitzero" description:"Since when the file is refused; missing for a tool."`
	Waits  bool      `json:"waits" description:"Whether the file is valid, but waits for a path that another file has."`
	Older  bool      `json:"older" description:"Whether an older version of the file is served."`
}

func refused() Operation {
	return Looks("refused", "List the files and tools that are refused, and why", func(_ context.Context, r *Request, _ struct{}) (Refusals, error) {
		all := Refusals{Refused: []Refusal{}}
		for _, f := range r.Service.Catalog.State().Refused {
			all.Refused = append(all.Refused, Refusal{What: f.Source, Kind: "file", Reason: f.Err.Error(), Since: f.Since, Waits: f.Waits, Older: f.Served})
		}
		g := r.generation()
		decide := decider(g)
		for _, route := range g.Routes() {
			if route.Ungranted {
				all.Refused = append(all.Refused, Refusal{What: route.Path, Kind: "tool", Reason: "not granted: " + strings.Join(decide(&route).Missing, ", ")})
			}
		}
		return all, nil
	})
}
