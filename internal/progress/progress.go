// Package progress drops some of a call's progress reports, so that the rest meet the rules of MCP: each report is greater than the one before, and
// there are only a few a second.
package progress

import (
	"math"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/text"
)

// MaxMessage is the size in bytes at which a report's message is cut.
const MaxMessage = 1 << 10

// At most ten reports pass in any second: nine at this pace (one every 170 ms, and up to four at once), and the last one at the end of the call.
// Three can usually pass at once, so that each step of a short tool is seen. The fourth is reserved for a report before the tool waits for something.
const (
	pace  = 170 * time.Millisecond
	ahead = 2 * pace // how early a report may be
	spare = pace     // how much earlier if the tool is about to wait
)

// Reports decide which reports of one call pass. The zero value is ready for use, by one goroutine at a time.
type Reports struct {
	begun       bool
	waits       bool      // the newest report has not been sent yet
	next        time.Time // when the next report would pass if none were ever early
	done, total float64   // the newest report
	message     []byte
}

// Add adds a report, in place of one that is still waiting. It is dropped if done is less than 0, not finite, or not greater than before. A total
// that is not finite, or is less than done, counts as unknown.
func (r *Reports) Add(done, total float64, message []byte) (added bool) {
	if math.IsNaN(done) || math.IsInf(done, 0) || done < 0 || r.begun && done <= r.done {
		return false
	}
	if math.IsNaN(total) || math.IsInf(total, 0) || total < done {
		total = 0
	}
	r.begun, r.waits = true, true
	r.done, r.total = math.Abs(done), math.Abs(total) // -0 is 0
	r.message = append(r.message[:0], message[:min(len(message), MaxMessage+1)]...)
	return true
}

// Due reports whether the waiting report may pass now. about says that the call is about to wait for something.
func (r *Reports) Due(now time.Time, about bool) bool {
	early := ahead
	if about {
		early += spare
	}
	return r.waits && !now.Before(r.next.Add(-early))
}

// Take returns the waiting report, which from then on counts as sent; ok is false if there is none.
func (r *Reports) Take(now time.Time) (done, total float64, message string, ok bool) {
	if !r.waits {
		return 0, 0, "", false
	}
	r.waits = false
	if r.next.Before(now) {
		r.next = now
	}
	r.next = r.next.Add(pace)
	return r.done, r.total, text.Clip(strings.ToValidUTF8(string(r.message), "\uFFFD"), MaxMessage), true
}
