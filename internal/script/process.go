package script

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"time"

	"github.com/toolsrv/toolsrv/internal/apart"
	"github.com/toolsrv/toolsrv/internal/script/engine"
	"github.com/toolsrv/toolsrv/internal/text"
)

// What reading one script may take.
const (
	// readSmall is the memory that it may take at first, in bytes: enough for most scripts. They have room of their own, so that they do not
	// wait for large ones.
	readSmall = 64 << 20
	// readQuick is the time of a processor that it may take at first: more than nearly all scripts do. A script that takes more is read once
	// more in a new process, with all that one may have, since what was read before in that one may be to blame. So one that never ends takes
	// eleven seconds, and not twice ten, and keeps the room for small scripts for one.
	readQuick  = time.Second
	readCPU    = 10 * time.Second
	readTime   = 30 * time.Second
	readOutput = 64 << 20 // bytes
	readWrong  = 8 << 10  // bytes of what is wrong with a script
	// readGarbage is how much garbage may lie, in percent of what is in use, which is little.
	readGarbage = 200
	// readIdle is how long a process is kept that reads nothing. It is short, since small machines need its memory.
	readIdle = 5 * time.Second
)

// A request is what a process is asked: to collect the files of a script.
type request struct {
	Root, Path string
	Given      bool // the content of the script's own file follows
}

// collected is what a process answers.
type collected struct {
	Files  []engine.File
	Inputs []string
	Wrong  string // what is wrong with the script, or ""
}

// Serve is all that a process of [Readers] does: it collects the files of the scripts that in asks for, one after the other, and answers on
// out. args has one number: the bytes of memory that it may take. The process must do nothing else: it is bounded from then on, and ends
// where a script breaks a bound.
func Serve(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	return apart.Serve(args, in, out, apart.Bounds{Garbage: readGarbage}, func(r *request, content []byte, _ apart.Limit) *collected {
		o := Options{Root: r.Root}
		if r.Given {
			o.Content = content
		}
		c := &collected{}
		err := errors.New("an untrusted script must be read in a folder")
		if r.Root != "" && LanguageOf(r.Path) != "" {
			c.Files, c.Inputs, err = collect(ctx, r.Path, o)
		}
		if err != nil {
			c.Files, c.Wrong = nil, text.Clip(err.Error(), readWrong)
		}
		return c
	})
}

// Readers have separate processes read scripts, one script at a time, and bound what these take together. Their methods are safe for
// concurrent use.
type Readers struct {
	processes    *apart.Pool
	each         int64
	small, large *apart.Room
	claim        func(bytes int64) (give func())
}

// NewReaders returns Readers for a machine with that many bytes of memory. helper is a command that calls [Serve] with its last argument,
// its standard input and its output. claim is called with what a process takes if the machine has too little for all; it may be nil. The
// caller closes the Readers.
func NewReaders(helper []string, machine int64, claim func(bytes int64) (give func())) *Readers {
	each := max(readSmall, apart.Memory(machine))
	if claim == nil || each >= apart.Ample {
		claim = func(int64) func() { return func() {} }
	}
	small := max(readSmall, min(machine/8, int64(runtime.GOMAXPROCS(0)+2)*readSmall))
	return &Readers{
		processes: apart.NewPool(apart.Config{Name: "a process that reads scripts", Command: helper, Each: each, Kept: int(small / readSmall), Idle: readIdle}),
		each:      each,
		small:     apart.NewRoom(small),
		large:     apart.NewRoom(max(each, min(2*apart.Ample, machine/4))),
		claim:     claim,
	}
}

// Close ends all processes, and waits until they are gone. Its error is nil.
func (r *Readers) Close() error {
	r.processes.Close()
	return nil
}

// read has a process collect the files of a script, with little memory and time, and if that is too little, with all that one may have. What fails in
// a process that has read other scripts is tried again in a new one: only what fails there is the script's fault.
func (r *Readers) read(ctx context.Context, root, path string, content []byte) (files []engine.File, inputs []string, err error) {
	most, fresh := apart.Limit{CPU: readQuick, Bytes: readSmall, Time: readTime}, false
	for {
		c, err := r.once(ctx, request{root, path, content != nil}, content, most, fresh)
		lost, isLost := errors.AsType[*apart.LostError](err)
		switch {
		case isLost && ((lost.Memory || lost.Refused) && most.Bytes < r.each || (lost.CPU || lost.System) && most.CPU < readCPU):
			most.CPU, most.Bytes, fresh = readCPU, r.each, true
		case isLost && !lost.Fresh:
			fresh = true
		case isLost:
			return nil, nil, judge(filepath.Base(path), lost, most.Bytes)
		case err != nil:
			return nil, nil, err
		case c.Wrong != "":
			return nil, c.Inputs, &Error{errors.New(c.Wrong)}
		default:
			return c.Files, c.Inputs, nil
		}
	}
}

// once has a process collect the files of a script once there is room for that much memory.
func (r *Readers) once(ctx context.Context, q request, content []byte, most apart.Limit, fresh bool) (c collected, err error) {
	room := r.small
	if most.Bytes > readSmall {
		room = r.large
	}
	if !room.Take(most.Bytes, ctx.Done()) {
		return c, context.Cause(ctx)
	}
	defer room.Give(most.Bytes)
	if most.Bytes > readSmall {
		defer r.claim(most.Bytes)()
	}
	_, err = r.processes.Do(ctx, &apart.Work{
		Fresh:   fresh,
		Request: q,
		Payload: content,
		Reply:   &c,
		Most:    readOutput,
		Limit:   most,
	})
	start, ok := errors.AsType[*apart.StartError](err)
	switch {
	case ok && start.Memory, errors.Is(err, apart.ErrClosed):
		return c, lost(filepath.Base(q.Path), err)
	case ok:
		return c, fmt.Errorf("start a process to read scripts: %w", err)
	}
	return c, err
}

// judge says whose fault it is that a script could not be read in a new process.
func judge(name string, why *apart.LostError, bytes int64) error {
	switch {
	case why.Memory:
		return tooMuch(name, "reading it takes more than "+ofMemory(bytes))
	case why.CPU, why.System:
		says := fmt.Sprintf("reading it takes more than %d s of a processor", readCPU/time.Second)
		if bytes > readSmall && bytes < apart.Ample { // to make do with little memory takes time
			says += ", or " + ofMemory(bytes)
		}
		return tooMuch(name, says)
	case why.Stuck:
		return lost(name, fmt.Errorf("reading it takes longer than %v, but not because of its size: the machine or its disk is busy", readTime))
	case why.Outside:
		return lost(name, fmt.Errorf("the process was killed from outside, as the system does when memory is short (%w)", why))
	case why.Silent && why.Code != 0 && why.Code != 1: // by a signal, or because Go's runtime gave up
		return tooMuch(name, fmt.Sprintf("reading it ended its process (%v)", why))
	}
	return fmt.Errorf("read the script in a separate process: %w", why)
}

// A LostError is that a script could not be read, and not because of the script: the system ended the process that read it, or did not let
// it go on. Another try may succeed.
type LostError struct{ Err error }

// Error returns the text of Err.
func (e *LostError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *LostError) Unwrap() error { return e.Err }

// Temporary returns true.
func (*LostError) Temporary() bool { return true }

// lost is the error of a script that may be read another time.
func lost(name string, why error) error {
	return &LostError{fmt.Errorf("%s: it could not be read, and will be tried again: %w", name, why)}
}

// tooMuch is the error of a script that breaks a bound.
func tooMuch(name, why string) error {
	return &Error{fmt.Errorf("%s: %s: simplify it, or make a tool file of it with toolsrv build", name, why)}
}

// ofMemory says how much memory a process has, and what limits it.
func ofMemory(bytes int64) string {
	if bytes < apart.Ample {
		return fmt.Sprintf("%d MiB of memory, which is all that this machine or its container has for that (a larger machine may read it)", bytes>>20)
	}
	return fmt.Sprintf("%d MiB of memory", bytes>>20)
}
