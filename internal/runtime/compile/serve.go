package compile

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/toolsrv/toolsrv/internal/apart"
	"github.com/toolsrv/toolsrv/internal/text"
)

// A request asks a process to compile a module. The module follows the request.
type request struct {
	Keep bool // keep the code; otherwise the module is only tried
	Both bool // the process may use both of its processors
}

// A reply says where the code is.
type reply struct {
	Name  string // name of the file in wazero's directory
	Size  int64
	Sum   [sha256.Size]byte
	Wrong string
	Kind  wrong
}

// A wrong says whose fault it is that there is no code.
type wrong int

const (
	wrongModule wrong = iota + 1
	wrongDisk
	wrongMemory
	wrongSize // of the code
)

const (
	maxWrong = 4 << 10 // bytes of an error message
	maxOpen  = 128     // files
	// How much garbage may accumulate, in percent of the memory in use. A small module uses so little that with 100 the collector would run for each.
	garbage, garbageSmall = 100, 400
	small                 = 64 << 10 // bytes of a module
	// serveProcessors is how many processors a process uses: the compiler uses one, or both if it may. Go's garbage collector would use all idle ones,
	// and the module would pay for their time.
	serveProcessors = 2
)

// Serve is the whole work of a process of a [Pool]: it reads modules from in, compiles them one at a time, and writes its answers to out. The files
// are in the working directory. args is one number: how many bytes of memory a module may use. The process must do nothing else, since its
// resources are limited from then on, and it ends when a module exceeds them.
func Serve(args []string, in io.Reader, out io.Writer) error {
	runtime.GOMAXPROCS(min(serveProcessors, runtime.GOMAXPROCS(0)))
	var s server
	return apart.Serve(args, in, out, apart.Bounds{File: mostCode, Open: maxOpen, Garbage: garbageSmall}, s.answer)
}

// A server compiles in its working directory, one module at a time.
type server struct {
	kept, tried *bench // made when first needed
	garbage     int    // percent of the memory in use
}

func (s *server) answer(r *request, module []byte, _ apart.Limit) *reply {
	a := &reply{}
	err := s.make(r, module, a)
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

func (s *server) make(r *request, module []byte, a *reply) error {
	percent := garbage
	if len(module) <= small {
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
	workers := 1
	if r.Both {
		workers = serveProcessors
	}
	name, err := (*b).make(module, workers)
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

// describe fills in the file's size and digest.
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
