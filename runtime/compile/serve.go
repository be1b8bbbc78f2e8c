package compile

import (
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"time"

	"github.com/toolsrv/toolsrv/internal/text"
)

// A request is what a process is asked: to compile a module.
type request struct {
	Number uint64
	Module []byte
	Keep   bool          // the code; otherwise it is only tried how much compiling takes
	CPU    time.Duration // what it may take
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
}

// A wrong says whose fault it is if there is no code.
type wrong int

const (
	wrongModule wrong = iota + 1
	wrongDisk
	wrongMemory
)

const (
	maxWrong = 4 << 10 // bytes of what is wrong with a module
	// exitTime is how a process exits that has used up its processor time.
	exitTime = 17
	// How much garbage may lie, in percent of what is in use: with a small module so little is that 100 would collect for each.
	garbage, garbageSmall = 100, 400
	small                 = 64 << 10 // bytes of a module
	// serveStack is the most that one goroutine's stack takes, in bytes.
	serveStack = 256 << 20
)

// Serve is all that a process of a [Pool] does: it compiles the modules that it is asked for on in, with their files in its working
// directory, and answers on out, until in ends. args has one number: the bytes of memory that it may have. The process must do nothing
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
	debug.SetMemoryLimit(most / 8 * 7) // where less is in use than that, collecting all the time would take longer than compiling
	if err := bound(most); err != nil {
		return fmt.Errorf("bound what compiling may take: %w", err)
	}
	encoder := gob.NewEncoder(out)
	if err := encoder.Encode(&reply{}); err != nil { // it is ready
		return err
	}
	requests := make(chan request)
	ended := make(chan error, 1)
	go func() {
		decoder := gob.NewDecoder(in)
		for {
			var r request
			if err := decoder.Decode(&r); err != nil { // also while a module is being compiled: nobody waits for it any more
				ended <- err
				return
			}
			requests <- r
		}
	}()
	go func() {
		var s server
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
	if err := allow(r.CPU); err != nil {
		return err
	}
	percent := garbage
	if len(r.Module) <= small {
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
	name, err := (*b).make(r.Module, 1)
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
