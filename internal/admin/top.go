package admin

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/toolsrv/toolsrv/internal/metrics"
)

// TopStep is the period over which calls are counted together.
const TopStep = metrics.Step

// TopArguments are the arguments of the operation top.
type TopArguments struct {
	Pattern string `json:"pattern,omitempty" description:"Only tools that match, such as math/add, math or math/*." maxLength:"1024"`
	Limit   int    `json:"limit,omitempty" description:"How many tools to list at most; 0 means 20." minimum:"0" maximum:"10000"`
	Steps   int    `json:"steps,omitempty" description:"How many of the last ten-second steps to list for each tool; 0 is none, 360 are an hour." minimum:"0" maximum:"360"`
}

// Top are the tools that are called most.
type Top struct {
	Until time.Time `json:"until" description:"When the last counted step ended."`
	Tools []TopTool `json:"tools" description:"The tools, those called most in the last minute first, and then in the last hour."`
}

// A TopTool has the figures of a tool's calls.
type TopTool struct {
	Tool   string     `json:"tool" description:"The tool's path, or other, for all tools that are called too rarely to be counted one by one."`
	Minute TopCalls   `json:"minute" description:"Its calls of the last minute."`
	Hour   TopSum     `json:"hour" description:"Its calls of the last hour."`
	Steps  []TopCalls `json:"steps,omitempty" description:"The last ten-second steps, the oldest first."`
}

// TopCalls are the calls of one period.
type TopCalls struct {
	TopSum
	Median float64 `json:"p50" description:"How many seconds half of them took at most, accurate to an eighth; refused calls don't count."`
	Slow   float64 `json:"p99" description:"How many seconds 99 in 100 took at most."`
}

// A TopSum is how many calls there were.
type TopSum struct {
	Calls  uint64 `json:"calls" description:"How many ended."`
	Failed uint64 `json:"failed" description:"How many of them failed or were refused."`
	Fuel   uint64 `json:"fuel" description:"How much fuel they burned, roughly in instructions, accurate to a hundredth, including the calls inside them."`
}

func (s *TopSum) add(more TopSum) {
	s.Calls += more.Calls
	s.Failed += more.Failed
	s.Fuel += more.Fuel
}

func top() Operation {
	return Looks("top", "List the tools that are called most, and how long that takes", func(_ context.Context, r *Request, in TopArguments) (Top, error) {
		match, err := matcher(in.Pattern)
		if err != nil {
			return Top{}, err
		}
		all, until := r.Service.Metrics.Tools(in.Steps)
		t := Top{Until: until, Tools: []TopTool{}}
		for _, of := range all {
			if in.Pattern != "" && (of.Path == metrics.Others || !match(of.Path)) {
				continue
			}
			one := TopTool{Tool: of.Path, Minute: callsOf(of.Minute), Hour: hourOf(&of)}
			for _, p := range of.Steps {
				one.Steps = append(one.Steps, callsOf(p))
			}
			t.Tools = append(t.Tools, one)
		}
		slices.SortFunc(t.Tools, func(a, b TopTool) int {
			return cmp.Or(cmp.Compare(b.Minute.Calls, a.Minute.Calls), cmp.Compare(b.Hour.Calls, a.Hour.Calls), cmp.Compare(a.Tool, b.Tool))
		})
		if most := cmp.Or(in.Limit, 20); len(t.Tools) > most {
			t.Tools = t.Tools[:most]
		}
		return t, nil
	})
}

func callsOf(p metrics.Point) TopCalls {
	return TopCalls{TopSum{uint64(p.Calls), uint64(p.Failed), p.Fuel}, p.Median.Seconds(), p.Slow.Seconds()}
}

func hourOf(t *metrics.Tool) TopSum { return TopSum{t.Calls, t.Failed, t.Fuel} }
