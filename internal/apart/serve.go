package apart

import (
	"bufio"
	"cmp"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"sync/atomic"
	"time"
)

// An ask is sent before a request and its payload.
type ask struct {
	Number uint64
	Size   int // bytes of the payload
	Limit  Limit
}

// An answer is sent before a reply. The first answer has no reply, and says that the process is ready.
type answer struct {
	Number uint64 // the number of the request
	Memory int64  // bytes of memory that the process has from the system
	Scarce bool   // only in the first answer: the system may refuse memory below the limit
}

const (
	// exitTime is the exit code of a process that has used up its processor time. exitSystem is the one if the system has used up the time on
	// behalf of the process.
	exitTime, exitSystem = 17, 18
	// mostStack is the most that one goroutine's stack takes, in bytes.
	mostStack = 256 << 20
)

// An allowance is the processor time that a process had used when it got a piece of work, and how much more it may use for that work.
type allowance struct {
	user, more time.Duration
}

// Bounds are limits of a process besides those of memory and processor time. 0 means the limit that the process has already.
type Bounds struct {
	File uint64 // the largest size of a file that it writes, in bytes
	Open uint64 // the largest number of open files
	// Garbage is the value of GOGC: how much garbage may lie around, in percent of the memory in use. 0 means 100.
	Garbage int
}

// Serve is what a process of a [Pool] does. It reads requests from in until in ends, and answers on out. args has one number: how many bytes of
// memory the process may have. Serve calls work for one request after another. The process must do nothing else: limits are set for it as a whole,
// and it ends when a piece of work exceeds one.
func Serve[Q, A any](args []string, in io.Reader, out io.Writer, b Bounds, work func(q *Q, payload []byte, most Limit) *A) error {
	if len(args) != 1 {
		return errors.New("a process that works for a server needs to know how much memory it may have")
	}
	most, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil {
		return err
	}
	debug.SetMaxStack(mostStack)
	debug.SetGCPercent(cmp.Or(b.Garbage, 100))
	var began atomic.Pointer[allowance]
	began.Store(&allowance{})
	scarce, err := bound(most, b, &began)
	if err != nil {
		return fmt.Errorf("limit what the process may take: %w", err)
	}
	type job struct {
		ask
		request Q
		payload []byte
	}
	jobs := make(chan *job)
	ended := make(chan error, 2)
	go func() {
		from := bufio.NewReader(in) // with a buffered reader, gob reads no more than it needs
		decoder := gob.NewDecoder(from)
		for {
			j := &job{}
			err := decoder.Decode(&j.ask)
			if err == nil {
				err = decoder.Decode(&j.request)
			}
			if err == nil {
				j.payload = make([]byte, j.Size)
				_, err = io.ReadFull(from, j.payload)
			}
			if err != nil { // the process exits even during work: nobody waits for the result any more
				ended <- err
				return
			}
			jobs <- j
		}
	}()
	go func() {
		encoder := gob.NewEncoder(out)
		fail := encoder.Encode(&answer{Scarce: scarce}) // says that the process is ready
		heap := int64(0)
		for fail == nil {
			j := <-jobs
			var a allowance
			if a, fail = allow(j.Limit); fail != nil {
				break
			}
			began.Store(&a)
			if now := heapFor(j.Limit.Bytes, most); now != heap {
				heap = now
				debug.SetMemoryLimit(heap)
			}
			reply := work(&j.request, j.payload, j.Limit)
			if fail = encoder.Encode(&answer{Number: j.Number, Memory: memory()}); fail == nil {
				fail = encoder.Encode(reply)
			}
		}
		ended <- fail
	}()
	if err := <-ended; !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// heapFor returns the soft limit of Go's heap. Keeping the heap small takes processor time: several times as much as the work itself if the limit is
// too low. So there is a limit only if the work can't have more memory; otherwise the work is tried again with more.
func heapFor(bytes, most int64) int64 {
	if bytes < most {
		return math.MaxInt64
	}
	return bytes / 8 * 7
}

// memory returns how many bytes of memory Go's runtime has got from the system and not returned.
func memory() int64 {
	all := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(all)
	return int64(all[0].Value.Uint64() - all[1].Value.Uint64())
}
