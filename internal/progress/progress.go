// Package progress thins a call's reports of progress to what MCP demands: each report is greater than the one before, and few
// come in a second.
package progress

import (
	"math"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/text"
)

// MaxMessage is the size in bytes at which a report's message is cut.
const MaxMessage = 1 << 10

// At most ten reports pass in any second: nine by the pace (one each 170 ms, and four at once), and the last one at the end. Three can
// pass at once at any time, so that each step of a short tool is seen. The fourth is kept for a report that would have to
// wait while the tool does.
const (
	pace  = 170 * time.Millisecond
	ahead = 2 * pace // by how much reports may be early
	spare = pace     // by how much more if the tool is about to wait
)

// Reports thin out what one call reports. The zero value is ready for use, by one goroutine at a time.
type Reports struct {
	begun       bool
	waits       bool      // the newest report is not told yet
	next        time.Time // when the next one would be told, if none were ever early
	done, total float64   // the newest report
	message     []byte
}

// Add takes a report. It is dropped where done is less than 0, not finite, or not more than before. A total that is not finite, or
// less than done, counts as unknown. A report that waits is replaced.
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

// Due reports whether to pass on a report now. about says that the call is about to wait.
func (r *Reports) Due(now time.Time, about bool) bool {
	early := ahead
	if about {
		early += spare
	}
	return r.waits && !now.Before(r.next.Add(-early))
}

// Take returns the waiting report, and counts it as told; ok is false if there is none.
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
