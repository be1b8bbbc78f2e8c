package metrics

import (
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"
)

const (
	// Step is the time for which calls are counted together, and Steps is how many of these times are kept: the last hour.
	Step  = 10 * time.Second
	Steps = 360
	// inMinute is how many steps a minute has.
	inMinute = 6

	// Durations are counted in buckets, four to each doubling, from 1 µs to some minutes.
	buckets = 112
	first   = 11 // durations in nanoseconds with fewer bits share the first bucket
)

// An hour has the figures of a tool's calls in the last hour. Calls can be added concurrently; all else is for one goroutine at a time.
type hour struct {
	// These belong to the current step.
	durations       [buckets]atomic.Uint32
	failed, refused atomic.Uint32
	fuel            atomic.Uint64

	// These are rings with an element for each step. median and slow are numbers of buckets.
	calls, failures [Steps]uint32
	median, slow    [Steps]uint8
	minute          [inMinute][buckets]uint32
	burned          *[Steps]rough // instructions; nil if no call has run any, as with tools that are parts of the program
}

// add counts a call that began. failed says whether it failed.
func (h *hour) add(took time.Duration, failed bool, fuel int64) {
	h.durations[bucketOf(took)].Add(1)
	if failed {
		h.failed.Add(1)
	}
	if fuel > 0 {
		h.fuel.Add(uint64(fuel))
	}
}

// refuse counts a call that did not begin.
func (h *hour) refuse() { h.refused.Add(1) }

// turn ends the current step, which has this number.
func (h *hour) turn(number int) {
	at, durations := number%Steps, &h.minute[number%inMinute]
	var all uint32
	for i := range h.durations {
		durations[i] = h.durations[i].Swap(0)
		all += durations[i]
	}
	refused := h.refused.Swap(0)
	h.calls[at], h.failures[at] = all+refused, h.failed.Swap(0)+refused
	h.median[at], h.slow[at] = uint8(percentile(durations, 50)), uint8(percentile(durations, 99))
	fuel := h.fuel.Swap(0)
	if fuel > 0 && h.burned == nil {
		h.burned = new([Steps]rough)
	}
	if h.burned != nil {
		h.burned[at] = roughly(fuel)
	}
}

// A rough number is the upper half of a float32: it takes a quarter of an int64's memory, and is accurate to a hundredth.
type rough uint16

func roughly(n uint64) rough {
	return rough((math.Float32bits(float32(n)) + 1<<15) >> 16) // rounded
}

func (r rough) number() uint64 { return uint64(math.Float32frombits(uint32(r) << 16)) }

// empty reports whether there was no call in the last hour.
func (h *hour) empty() bool { return h.calls == [Steps]uint32{} }

// bucketOf returns the bucket of a duration.
func bucketOf(d time.Duration) int {
	ns := uint64(max(d, 0))
	doubling := bits.Len64(ns) - first
	if doubling < 0 {
		return 0
	}
	return min(4*doubling+int(ns>>(doubling+first-3)&3), buckets-1)
}

// middle returns the middle of a bucket.
func middle(bucket int) time.Duration {
	return time.Duration(2*(4+bucket%4)+1) << (bucket/4 + first - 4)
}

// percentile returns the bucket in which that percentile of the durations is, or 0 if there are none.
func percentile(durations *[buckets]uint32, hundredths uint64) int {
	var all, below uint64
	for _, n := range durations {
		all += uint64(n)
	}
	for i, n := range durations {
		if below += uint64(n); below*100 >= all*hundredths && below > 0 {
			return i
		}
	}
	return 0
}

// A Point has the figures of one step.
type Point struct {
	// Calls is how many calls ended, and Failed how many of them failed or were refused.
	Calls, Failed uint32
	// Fuel is how many instructions they ran, including those of calls inside them, accurate to a hundredth.
	Fuel uint64
	// Of the calls that were not refused, half took at most Median, and 99 % at most Slow. Both are accurate to an eighth.
	Median, Slow time.Duration
}

// points returns the steps up to the one with this number, the oldest first.
func (h *hour) points(number, most int) []Point {
	all := make([]Point, min(most, Steps))
	for i := range all {
		at := (number - len(all) + 1 + i + Steps) % Steps
		all[i] = Point{Calls: h.calls[at], Failed: h.failures[at]}
		if h.burned != nil {
			all[i].Fuel = h.burned[at].number()
		}
		if h.calls[at] > 0 {
			all[i].Median, all[i].Slow = middle(int(h.median[at])), middle(int(h.slow[at]))
		}
	}
	return all
}

// lastMinute returns the figures of the last six steps together.
func (h *hour) lastMinute(number int) Point {
	var p Point
	for _, step := range h.points(number, inMinute) {
		p.Calls += step.Calls
		p.Failed += step.Failed
		p.Fuel += step.Fuel
	}
	if p.Calls > 0 {
		var durations [buckets]uint32
		for i := range h.minute {
			for at, n := range h.minute[i] {
				durations[at] += n
			}
		}
		p.Median, p.Slow = middle(percentile(&durations, 50)), middle(percentile(&durations, 99))
	}
	return p
}

// A Tool has the figures of a tool's calls.
type Tool struct {
	// Path is the path of the tool, or Others.
	Path string
	// Minute has the figures of the last minute.
	Minute Point
	// Calls is how many calls ended in the last hour, and Failed how many of them failed or were refused.
	Calls, Failed uint64
	// Fuel is how many instructions the calls ran, as in a Point.
	Fuel uint64
	// Steps are the last steps, the oldest first.
	Steps []Point
}

// Tools returns the figures of the tools that have their own, and those of all others together if they had calls. They are in no order. steps is how
// many steps of the last hour to return, at most Steps. until is when the last step ended.
func (m *Metrics) Tools(steps int) (all []Tool, until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.all() {
		if f.hour.empty() {
			continue
		}
		t := Tool{Path: f.path, Minute: f.hour.lastMinute(m.turns), Steps: f.hour.points(m.turns, steps)}
		for i := range Steps {
			t.Calls += uint64(f.hour.calls[i])
			t.Failed += uint64(f.hour.failures[i])
			if f.hour.burned != nil {
				t.Fuel += f.hour.burned[i].number()
			}
		}
		all = append(all, t)
	}
	return all, m.turned
}

// all returns all figures. Those that tools share come first. m.mu is held.
func (m *Metrics) all() []*figures {
	all := []*figures{m.others}
	for _, c := range m.byPath {
		if f := c.own.Load(); f != nil {
			all = append(all, f)
		}
	}
	return all
}

// Counted returns the paths of the tools that have figures of their own, sorted.
func (m *Metrics) Counted() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var paths []string
	for _, f := range m.all()[1:] {
		paths = append(paths, f.path)
	}
	slices.Sort(paths)
	return paths
}
