package compile

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/toolsrv/toolsrv/internal/apart"
)

// A Pool compiles modules in processes of its own, each of which compiles one module at a time. It is safe for concurrent use.
type Pool struct {
	processes *apart.Pool
	each      int64 // bytes of memory that one process may use
	log       *slog.Logger
	patience  time.Duration
	closing   context.Context // ends with the pool
	close     func()
	large     *apart.Room // for modules that may take more than SmallBytes
	small     *apart.Room // for the others, so that these do not wait for large ones
}

const (
	// SmallBytes is the memory that every module may use. Modules limited to that amount have a part of the memory to themselves.
	SmallBytes = 32 << 20
	// large is the size in bytes from which a module is compiled on two processors, if there is enough memory: that takes a fifth more. CPython is ready
	// after 2.7 s instead of 4.3 (bench/cmd/scale -engine python -scripts 1). With two processors, nobody can recover from a panic of the compiler.
	// So if the process ends or needs too much memory, the module is tried on one.
	large = 1 << 20
	// patience is how many seconds a process may take for each second of processor time, and patienceBase how long it may take in addition. On a busy
	// machine a process has to wait, and a process that hangs uses no processor time.
	patience     = 30
	patienceBase = time.Minute
	// idleTime is how long an unused process is kept.
	idleTime = 30 * time.Second

	maxReply = 64 << 10 // bytes
)

var (
	// ErrClosed is returned by a pool that is closed.
	ErrClosed = errors.New("the compiling processes have ended")
	// ErrUnavailable is returned if no such processes can be started.
	ErrUnavailable = errors.New("modules can't be compiled in separate processes")
	// ErrLost is returned if a process ended or made no progress, and the module is perhaps not the reason: the system may have taken its memory,
	// or given it no processor.
	ErrLost = errors.New("the process that compiled the module was stopped by the system")
)

// A Config is the configuration of a Pool.
type Config struct {
	// Command starts a process; the pool adds one argument. The process calls [Serve] with that argument, and with its standard input and output.
	Command []string
	// Each is how many bytes of memory one module may use. Large is how many bytes all modules above SmallBytes may use together, at least Each.
	// Small is how many bytes the others may use together, at least SmallBytes.
	Each, Large, Small int64
	// Logger logs processes that end before they are done. If nil, nothing is logged.
	Logger *slog.Logger
}

// A Limit bounds what compiling one module may use.
type Limit struct {
	CPU   time.Duration // time on a processor
	Bytes int64         // of memory, SmallBytes at least; 0, or more than Config.Each, means Config.Each
}

// A TooMuch is the error for a module that exceeded a limit.
type TooMuch struct {
	// Limit is the limit that applied.
	Limit
	// Memory reports whether the module exceeded the limit on memory, rather than that on processor time.
	Memory bool
}

// Error says which limit was exceeded, and what to do.
func (t *TooMuch) Error() string {
	const advice = "split its largest functions, or optimise it with the compiler or wasm-opt"
	switch {
	case t.Memory && t.Bytes < apart.Ample:
		return fmt.Sprintf("compiling the module takes more than %d MiB of memory, which is all that this machine or its container has for that: give it more, use a cache directory in which a larger machine has compiled the module, or %s",
			t.Bytes>>20, advice)
	case t.Memory:
		return fmt.Sprintf("compiling the module takes more than %d MiB of memory: %s", t.Bytes>>20, advice)
	}
	return fmt.Sprintf("compiling the module takes more than %v of processor time: %s", t.CPU.Round(time.Second/10), advice)
}

// NewPool returns a pool. It does not start a process yet. The caller closes the pool.
func NewPool(c Config) (*Pool, error) {
	if !apart.Supported {
		return nil, fmt.Errorf("%w: this system can't limit what a process takes", ErrUnavailable)
	}
	if len(c.Command) == 0 {
		return nil, errors.New("no command is set to start compiling processes")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	each, small := max(c.Each, SmallBytes), max(c.Small, SmallBytes)
	p := &Pool{
		processes: apart.NewPool(apart.Config{Name: "a process that compiles", Command: c.Command, Each: each, Kept: int(small / SmallBytes), Idle: idleTime, Measured: true}),
		each:      each,
		log:       c.Logger,
		patience:  patienceBase,
		large:     apart.NewRoom(max(c.Large, each)),
		small:     apart.NewRoom(small),
	}
	p.closing, p.close = context.WithCancel(context.Background())
	return p, nil
}

// Most returns how many bytes of memory one module may use.
func (p *Pool) Most() int64 { return p.each }

// Compile compiles a module. The code passes through a directory that is made below scratch, which nobody else may change. If scratch is "", Compile
// only checks that the module can be compiled, and returns no code. It waits until there is room for the memory that the module may use.
//
// The error is a *TooMuch if the module exceeded a limit, and would do so again. It is ErrDisk, ErrNoMemory, ErrLost, ErrClosed or ErrUnavailable if
// it is probably not the module's fault. Any other error says what is wrong with the module.
func (p *Pool) Compile(scratch string, module []byte, most Limit) (File, error) {
	if most.Bytes <= 0 {
		most.Bytes = p.each
	}
	most.Bytes = max(SmallBytes, min(most.Bytes, p.each))
	room := p.small
	if most.Bytes > SmallBytes {
		room = p.large
	}
	if !room.Take(most.Bytes, p.closing.Done()) {
		return File{}, ErrClosed
	}
	defer room.Give(most.Bytes)
	both := len(module) >= large && p.each >= apart.Ample
	f, fresh, err := p.once(scratch, module, most, both, false)
	lost, isLost := errors.AsType[*apart.LostError](err)
	switch {
	case errors.Is(err, ErrDisk) && !fresh: // its directory may have been removed
	case isLost && (again(lost) || both && lost.Memory):
		p.log.Info("a compiling process ended before it was done: trying again", "error", err)
	default:
		return f, judge(err, most)
	}
	f, _, err = p.once(scratch, module, most, false, true)
	return f, judge(err, most)
}

// again reports whether a module should be tried in a new process.
func again(lost *apart.LostError) bool {
	switch {
	case lost.Stuck, lost.System, lost.CPU:
		return false
	case lost.Memory:
		return !lost.Fresh // earlier modules have used some of the memory
	}
	return true // an earlier module may have caused it
}

// judge turns the loss of a process into an error that says whose fault it is.
func judge(err error, most Limit) error {
	lost, ok := errors.AsType[*apart.LostError](err)
	switch {
	case !ok:
		return err
	case lost.CPU:
		return &TooMuch{Limit: most}
	case lost.Memory:
		return &TooMuch{Limit: most, Memory: true}
	case lost.Outside, lost.Stuck, lost.System:
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	return fmt.Errorf("the process that compiles the module ended twice before it was done: %w", err)
}

// once compiles a module in one process: on both processors if both is true, and in a new process if wanted is true. It reports whether the
// process was new.
func (p *Pool) once(scratch string, module []byte, most Limit, both, wanted bool) (f File, fresh bool, err error) {
	var a reply
	fresh, err = p.processes.Do(context.Background(), &apart.Work{
		Scratch: scratch,
		Fresh:   wanted,
		Request: request{Keep: scratch != "", Both: both},
		Payload: module,
		Reply:   &a,
		Most:    maxReply,
		Limit:   apart.Limit{CPU: most.CPU, Bytes: most.Bytes, Time: p.patience + patience*most.CPU},
		Check: func(dir string) (good bool, err error) {
			if a.Kind == 0 && dir != "" {
				f, err = a.fetch(dir)
			}
			return a.Kind != wrongDisk && a.Kind != wrongMemory, err
		},
	})
	if start, ok := errors.AsType[*apart.StartError](err); ok {
		kind := ErrUnavailable
		switch {
		case start.Directory:
			kind = ErrDisk
		case start.Memory:
			kind = ErrNoMemory
		}
		err = fmt.Errorf("%w: %w", kind, err)
	}
	switch {
	case errors.Is(err, apart.ErrClosed):
		return File{}, fresh, ErrClosed
	case err != nil:
		return File{}, fresh, err
	}
	switch a.Kind {
	case 0:
		return f, fresh, nil
	case wrongDisk:
		err = fmt.Errorf("%w: %s", ErrDisk, a.Wrong)
	case wrongMemory:
		err = fmt.Errorf("%w: %s", ErrNoMemory, a.Wrong)
	case wrongSize:
		err = &TooMuch{Limit: most, Memory: true}
	default:
		err = errors.New(a.Wrong)
	}
	return File{}, fresh, err
}

// Ready starts a process if there is none, and does not wait for it. It is called when a module may be about to be compiled, since starting a process
// takes longer than compiling a small module. scratch returns the directory that will be used; after an error no process is started.
func (p *Pool) Ready(scratch func() (string, error)) { p.processes.Ready(scratch) }

// Close ends all processes, and waits until they are gone. Modules that are being compiled fail with ErrClosed. Close can be called twice.
func (p *Pool) Close() {
	p.close()
	p.processes.Close()
}

// fetch reads the code that a process says it has left in its directory, and removes it. If the file is not as the process says, that is an error.
func (a *reply) fetch(dir string) (f File, err error) {
	if !filepath.IsLocal(a.Name) || a.Size <= 0 || a.Size > mostCode {
		return f, fmt.Errorf("it says that it left %d bytes in %.100q", a.Size, a.Name)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return f, err
	}
	defer root.Close()
	info, err := root.Lstat(a.Name)
	if err != nil {
		return f, err
	}
	if !info.Mode().IsRegular() || info.Size() != a.Size {
		return f, fmt.Errorf("it says that it left %d bytes, but left %v, of %d bytes", a.Size, info.Mode(), info.Size())
	}
	file, err := root.Open(a.Name)
	if err != nil {
		return f, err
	}
	defer file.Close()
	code := make([]byte, a.Size)
	if _, err := io.ReadFull(file, code); err != nil {
		return f, err
	}
	if sha256.Sum256(code) != a.Sum {
		return f, errors.New("the code that it left is not the code that it announced")
	}
	return File{Name: filepath.Base(a.Name), Code: code}, root.Remove(a.Name)
}

// mostCode is the largest size of a module's code, in bytes.
const mostCode = 768 << 20
