package admin

import (
	"context"

	"github.com/toolsrv/toolsrv/internal/events"
)

// EventsArguments are the arguments of the operation events.
type EventsArguments struct {
	Tool  string `json:"tool,omitempty" description:"List only events of tools that match, such as math/add, math or math/*." maxLength:"1024"`
	After string `json:"after,omitempty" description:"List events after the one with this id, the oldest first; by default the last ones." maxLength:"64"`
	Limit int    `json:"limit,omitempty" description:"How many events to list at most; 0 means 100." minimum:"0" maximum:"1000"`
	Wait  int    `json:"wait,omitempty" description:"How many seconds to wait for an event if there is none yet." minimum:"0" maximum:"10"`
}

// Events is the result of the operation events.
type Events struct {
	Events []events.Event `json:"events" description:"The events, the oldest first."`
	Last   string         `json:"last" description:"The id to pass as after the next time."`
	Missed bool           `json:"missed" description:"Whether the given id is too old, or from another run of the server: these are the last events, and there may have been others."`
}

func eventsOf() Operation {
	o := Looks("events", "List what has happened to the tools, or is happening, including refused files and the audit", func(ctx context.Context, r *Request, in EventsArguments) (Events, error) {
		matches, err := matcher(in.Tool)
		if err != nil {
			return Events{}, err
		}
		if in.Limit == 0 {
			in.Limit = defaultLines
		}
		ctx, leave, err := r.waiting.await(ctx, r, in.Wait)
		if err != nil {
			return Events{}, err
		}
		defer leave()
		for after, woken := in.After, false; ; woken = true {
			page := r.Service.Events.After(after, in.Limit, func(e *events.Event) bool { return in.Tool == "" || e.Tool != "" && matches(e.Tool) })
			if len(page.Events) > 0 || page.Missed || ctx.Err() != nil || in.Wait == 0 {
				return Events(page), nil
			}
			if after = page.Last; woken {
				pause(ctx)
			}
			select {
			case <-r.Service.Events.Wait(after):
			case <-ctx.Done():
			}
		}
	})
	o.waits = true
	return o
}
