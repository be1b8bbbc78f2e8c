package compile

import (
	"bufio"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/toolsrv/toolsrv/internal/text"
)

// A request is what a process is asked: to compile a module. The module follows it.
type request struct {
	Number uint64
	Size   int           // bytes of the module
	Keep   bool          // the code; otherwise it is only tried how much compiling takes
	CPU    time.Duration // what it may take
	Bytes  int64

	module []byte
}

// A reply tells where the code is.
type reply struct {
	Number uint64 // of the request
	Name   string // of the file, in wazero's directory
	Size   int64
	Sum    [sha256.Size]byte
	Memory int64 // bytes of memory that the process has
	Wrong  string
	Kind   wrong
	Scarce bool // of the first reply, which is all that it says: the system may refuse memory below the bound
}

// A wrong says whose fault it is if there is no code.
type wrong int

const (
	wrongModule wrong = iota + 1
	wrongDisk
	wrongMemory
	wrongSize // of the code
)

const (
	maxWrong = 4 << 10 // bytes of the message about a module's fault
	// exitTime is how a process exits that has used up its processor time, and exitSystem if the system has used it up for it.
	exitTime, exitSystem = 17, 18
	// How much garbage may lie, in percent of what is in use: a small module uses so little that 100 would collect for each.
	garbage, garbageSmall = 100, 400
	small                 = 64 << 10 // bytes of a module
	// serveStack is the most that one goroutine's stack takes, in bytes.
	serveStack = 256 << 20
	// serveProcessors is how many processors it uses: the compiler uses one, and Go's garbage collector would use all idle ones, at the
	// module's expense.
	serveProcessors = 2
)

// Serve is all that a process of a [Pool] does. Until in ends, it reads from it which modules to compile, and answers on out. The
// files are in the working directory. args has one number: the bytes of memory that a module may take. The process must do nothing
// else: it is bounded from then on, and ends where a module breaks a bound.
func Serve(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("a process that compiles needs to know how much memory it may have")
	}
	most, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil {
		return err
	}
	debug.SetMaxStack(serveStack)
	runtime.GOMAXPROCS(min(serveProcessors, runtime.GOMAXPROCS(0)))
	var s server
	s.most = most
	s.began.Store(&allowance{})
	scarce, err := bound(most, &s.began)
	if err != nil {
		return fmt.Errorf("bound what compiling may take: %w", err)
	}
	encoder := gob.NewEncoder(out)
	if err := encoder.Encode(&reply{Scarce: scarce}); err != nil { // it is ready
		return err
	}
	requests := make(chan request)
	ended := make(chan error, 1)
	go func() {
		from := bufio.NewReader(in) // gob reads no more of it than it needs
		decoder := gob.NewDecoder(from)
		for {
			var r request
			err := decoder.Decode(&r)
			if err == nil {
				r.module = make([]byte, r.Size)
				_, err = io.ReadFull(from, r.module)
			}
			if err != nil { // also while a module is being compiled: nobody waits for it any more
				ended <- err
				return
			}
			requests <- r
		}
	}()
	go func() {
		for r := range requests {
			if err := encoder.Encode(s.answer(&r)); err != nil {
				ended <- err
				return
			}
		}
	}()
	if err := <-ended; !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// A server compiles in its working directory, one module at a time.
type server struct {
	kept, tried *bench // made when first needed
	garbage     int    // percent of what is in use
	most        int64  // bytes that a module may take
	began       atomic.Pointer[allowance]
}

// heap returns how large Go's heap should get at most. To keep it small takes processor time, several times as much as compiling itself if
// it is too small. So that is done only if a module can't have more memory; otherwise it is tried again with more.
func (s *server) heap(bytes int64) int64 {
	if bytes < s.most {
		return math.MaxInt64
	}
	return bytes / 8 * 7
}

func (s *server) answer(r *request) *reply {
	a := &reply{Number: r.Number}
	err := s.make(r, a)
	a.Memory = memory()
	if err == nil {
		return a
	}
	a.Wrong = text.Clip(err.Error(), maxWrong)
	switch {
	case errors.Is(err, syscall.EFBIG):
		a.Kind = wrongSize
	case errors.Is(err, ErrDisk):
		a.Kind = wrongDisk
	case errors.Is(err, ErrNoMemory):
		a.Kind = wrongMemory
	default:
		a.Kind = wrongModule
	}
	return a
}

func (s *server) make(r *request, a *reply) error {
	began, err := allow(r.CPU)
	if err != nil {
		return err
	}
	s.began.Store(began)
	debug.SetMemoryLimit(s.heap(r.Bytes))
	percent := garbage
	if len(r.module) <= small {
		percent = garbageSmall
	}
	if s.garbage != percent {
		s.garbage = percent
		debug.SetGCPercent(percent)
	}
	b, dir := &s.tried, ""
	if r.Keep {
		b, dir = &s.kept, "."
	}
	if *b == nil {
		var err error
		if *b, err = openBench(dir); err != nil {
			return err
		}
	}
	name, err := (*b).make(r.module, 1)
	if err != nil || !r.Keep {
		return err
	}
	path := filepath.Join((*b).files, name)
	if err := a.describe(path); err != nil {
		return fmt.Errorf("%w: %w", ErrDisk, err)
	}
	a.Name = path
	return nil
}

// describe notes how large the file is, and its digest.
func (a *reply) describe(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if a.Size, err = io.Copy(h, f); err != nil {
		return err
	}
	h.Sum(a.Sum[:0])
	return nil
}

// memory returns how many bytes of memory Go's runtime has from the system, and has not given back.
func memory() int64 {
	all := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(all)
	return int64(all[0].Value.Uint64() - all[1].Value.Uint64())
}
