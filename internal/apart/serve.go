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

// An ask comes before a request and its payload.
type ask struct {
	Number uint64
	Size   int // bytes of the payload
	Limit  Limit
}

// An answer comes before a reply. The first one comes alone, and says that the process is ready.
type answer struct {
	Number uint64 // of the request
	Memory int64  // bytes that the process has
	Scarce bool   // of the first: the system may refuse memory below the bound
}

const (
	// exitTime is how a process exits that has used up its processor time, and exitSystem if the system has used it up for it.
	exitTime, exitSystem = 17, 18
	// mostStack is the most that one goroutine's stack takes, in bytes.
	mostStack = 256 << 20
)

// An allowance is the processor time that a process had used when it got a piece of work, and the time that it may use for it.
type allowance struct {
	user, more time.Duration
}

// Bounds are what a process may take besides memory and processor time; 0 means as much as this one.
type Bounds struct {
	File uint64 // bytes of a file that it writes
	Open uint64 // files
	// Garbage is how much of that may lie, in percent of what is in use; 0 means as much.
	Garbage int
}

// Serve is all that a process of a [Pool] does. Until in ends, it reads from it what to do, and answers on out. args has one number: the
// bytes of memory that it may have. work is called for one request after the other. The process must do nothing else: it is bounded from
// then on, and ends where a piece of work breaks a bound.
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
		from := bufio.NewReader(in) // gob reads no more of it than it needs
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
			if err != nil { // also during its work: nobody waits for it any more
				ended <- err
				return
			}
			jobs <- j
		}
	}()
	go func() {
		encoder := gob.NewEncoder(out)
		fail := encoder.Encode(&answer{Scarce: scarce}) // it is ready
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

// heapFor returns how large Go's heap should get at most. To keep it small takes processor time, several times as much as the work itself
// if it is too small. So that is done only if the work can't have more memory; otherwise it is tried again with more.
func heapFor(bytes, most int64) int64 {
	if bytes < most {
		return math.MaxInt64
	}
	return bytes / 8 * 7
}

// memory returns how many bytes of memory Go's runtime has from the system, and has not given back.
func memory() int64 {
	all := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(all)
	return int64(all[0].Value.Uint64() - all[1].Value.Uint64())
}
