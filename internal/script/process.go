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

// Limits on reading a script.
const (
	// readSmall is the memory that reading may use at first, in bytes: enough for most scripts. These have room of their own, so that they do not wait
	// for large ones.
	readSmall = 64 << 20
	// readQuick is the processor time that reading may use at first: more than nearly all scripts need. A script that takes longer is read once more in
	// a new process, with the full time, since earlier scripts in the same process may have caused the delay. So a script that never ends takes eleven
	// seconds instead of twice ten, and uses the room for small scripts for only one of them.
	readQuick  = time.Second
	readCPU    = 10 * time.Second
	readTime   = 30 * time.Second
	readOutput = 64 << 20 // bytes
	readWrong  = 8 << 10  // bytes of an error about a script
	// readGarbage is how much garbage may accumulate, in percent of the memory in use, which is small.
	readGarbage = 200
	// readIdle is how long an idle process is kept. It is short, since small machines need the memory.
	readIdle = 5 * time.Second
)

// A request asks a process to collect the files of a script.
type request struct {
	Root, Path string
	Given      bool // the content of the script's own file follows
}

// collected is the process's answer.
type collected struct {
	Files  []engine.File
	Inputs []string
	Wrong  string // the error about the script, or ""
}

// Serve is the whole work of a process of [Readers]. It collects the files of the scripts that come in through in, one at a time, and answers on out.
// args is one number: how many bytes of memory it may use. The process must do nothing else, since its resources are limited from then on, and it
// ends when a script exceeds them.
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

// Readers read scripts in separate processes, one script at a time, and limit what all of them use together. Their methods are safe for
// concurrent use.
type Readers struct {
	processes    *apart.Pool
	each         int64
	small, large *apart.Room
	claim        func(bytes int64) (give func())
}

// NewReaders returns Readers for a machine with that many bytes of memory. helper is a command that calls [Serve] with its last argument, its
// standard input and its output. claim is called with the memory that a process may use, if the machine does not have enough for all processes; it
// may be nil. The caller closes the Readers.
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

// read has a process collect the files of a script, at first with little memory and time and, if that is too little, with as much as is allowed. If
// it fails in a process that has read other scripts, it is tried again in a new one: only a failure there is the script's fault.
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

// once has a process collect the files of a script as soon as there is room for that much memory.
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

// judge decides whose fault it is that a script could not be read in a new process.
func judge(name string, why *apart.LostError, bytes int64) error {
	switch {
	case why.Memory:
		return tooMuch(name, "reading it takes more than "+ofMemory(bytes))
	case why.CPU, why.System:
		says := fmt.Sprintf("reading it takes more than %d s of processor time", readCPU/time.Second)
		if bytes > readSmall && bytes < apart.Ample { // getting by with little memory takes time
			says += ", or " + ofMemory(bytes)
		}
		return tooMuch(name, says)
	case why.Stuck:
		return lost(name, fmt.Errorf("reading it takes longer than %v, but not because of its size: the machine or its disk is busy", readTime))
	case why.Outside:
		return lost(name, fmt.Errorf("the process was killed from outside, as the system does when memory is short (%w)", why))
	case why.Silent && why.Code != 0 && why.Code != 1: // ended by a signal, or because Go's runtime gave up
		return tooMuch(name, fmt.Sprintf("reading it ended its process (%v)", why))
	}
	return fmt.Errorf("read the script in a separate process: %w", why)
}

// A LostError means that a script could not be read, but not because of the script: the system ended the process that read it, or did not let it run.
// Another attempt may succeed.
type LostError struct{ Err error }

// Error returns the text of Err.
func (e *LostError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *LostError) Unwrap() error { return e.Err }

// Temporary returns true.
func (*LostError) Temporary() bool { return true }

// lost returns the error for a script that may be read later.
func lost(name string, why error) error {
	return &LostError{fmt.Errorf("%s: it could not be read, and will be tried again: %w", name, why)}
}

// tooMuch returns the error for a script that exceeds a limit.
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
