package admin

import (
	"context"
	"time"
)

// SlowArguments are the arguments of the operation slow.
type SlowArguments struct {
	Pattern string `json:"pattern,omitempty" description:"Only calls of tools that match, such as math/add, math or math/*." maxLength:"1024"`
	Limit   int    `json:"limit,omitempty" description:"How many calls to list at most; 0 means 20." minimum:"0" maximum:"200"`
}

// Slowest are the slowest calls of the last 30 to 60 minutes.
type Slowest struct {
	Calls []SlowCall `json:"calls" description:"The calls, the slowest first."`
}

// A SlowCall is a call, and where it has spent its time.
type SlowCall struct {
	Tool      string     `json:"tool" description:"The tool's path."`
	Version   string     `json:"version,omitempty" description:"The version that answered, as its author wrote it."`
	Digest    string     `json:"digest,omitempty" description:"The SHA-256 of the file that answered."`
	Began     time.Time  `json:"began" description:"When the request came."`
	Seconds   float64    `json:"seconds" description:"How long the call took, including reading the request and sending the answer."`
	Phases    []SlowPart `json:"phases" description:"Its phases: checking the arguments, waiting for a place, compiling, starting an instance (including the wait for memory), running, resetting. A missing phase took no time."`
	Uses      []SlowUse  `json:"uses" description:"The call's use of the tool's grants while it ran."`
	Code      string     `json:"code,omitempty" description:"The code of the error, if the call failed."`
	Door      string     `json:"door" description:"The door through which the call came."`
	Principal string     `json:"principal,omitempty" description:"Who called."`
	Caller    string     `json:"caller,omitempty" description:"What distinguishes the caller from others with that name, such as oidc+https%3a%2f%2fid.example.com+ann."`
	Client    string     `json:"client,omitempty" description:"The client's address."`
	RequestID string     `json:"request_id" description:"The request's id, as in the log and the answer."`
}

// A SlowPart is a part of a call.
type SlowPart struct {
	Name    string  `json:"name" enum:"check,wait,compile,start,run,reset" description:"Which."`
	Seconds float64 `json:"seconds" description:"How long it took."`
}

// A SlowUse is what a call used of a capability.
type SlowUse struct {
	Capability string  `json:"capability" description:"Which."`
	Count      int     `json:"count" description:"How often."`
	Seconds    float64 `json:"seconds" description:"How long that took."`
}

func slowest() Operation {
	return Looks("slow", "List the slowest calls of the last hour, and where each spent its time", func(_ context.Context, r *Request, in SlowArguments) (Slowest, error) {
		match, err := matcher(in.Pattern)
		if err != nil {
			return Slowest{}, err
		}
		if in.Limit == 0 {
			in.Limit = 20
		}
		all := Slowest{Calls: []SlowCall{}}
		for _, c := range r.Server.Slow() {
			if len(all.Calls) == in.Limit {
				break
			}
			if !match(c.Tool) {
				continue
			}
			one := SlowCall{Tool: c.Tool, Version: c.Version, Digest: c.Digest, Began: c.Began, Seconds: c.Took.Seconds(), Phases: []SlowPart{}, Uses: []SlowUse{},
				Code: string(c.Code), Door: c.Door, Principal: c.Principal, Caller: c.Caller, Client: c.Client, RequestID: c.RequestID}
			for _, p := range c.Phases {
				one.Phases = append(one.Phases, SlowPart{p.Name, p.Took.Seconds()})
			}
			for _, u := range c.Uses {
				one.Uses = append(one.Uses, SlowUse{u.Capability, u.Count, u.Took.Seconds()})
			}
			all.Calls = append(all.Calls, one)
		}
		return all, nil
	})
}
