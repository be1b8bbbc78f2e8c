package apart

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// lookTime is how often a process is measured while it works.
	lookTime = 25 * time.Millisecond
	// systemTimes bounds what a piece of work and the system on its behalf may use together: so many times the work's limit of processor time.
	systemTimes = 2
	// beginTime is how long a process may take to begin.
	beginTime = time.Minute
	// silentTime is how long a process may take to end once it has closed its output.
	silentTime = time.Second

	maxAnswer = 4 << 10 // bytes of an answer, without its reply
	maxStderr = 4 << 10
)

// A process does one piece of work after another. Only one goroutine uses it at a time, but any goroutine may end it.
type process struct {
	name    string
	cmd     *exec.Cmd
	scratch string // the parent of its directory
	dir     string
	in      io.WriteCloser
	used    *Meter // nil if the system does not tell
	out     *os.File
	said    *head
	encoder *gob.Encoder
	decoder *gob.Decoder
	left    *io.LimitedReader // how many bytes it may still send
	scarce  bool              // the system may refuse memory to the process below its limit
	number  uint64
	served  int    // how many pieces of work it was given
	last    answer // its last one
	timer   *time.Timer

	ending sync.Once
	ended  chan struct{} // closed when the process and its directory are gone; from then on, waited is set
	waited error
}

// start starts a process with an almost empty environment, in an empty directory below scratch, or in this process's directory if scratch is "".
func start(c *Config, scratch string) (p *process, err error) {
	p = &process{name: c.Name, scratch: scratch, said: &head{}, ended: make(chan struct{})}
	if scratch != "" {
		if p.dir, err = os.MkdirTemp(scratch, "helper-"); err != nil {
			return nil, &StartError{Err: err, Directory: true}
		}
	}
	out, written, err := os.Pipe()
	if err != nil {
		return nil, &StartError{Err: errors.Join(err, p.clean()), Memory: true}
	}
	p.cmd = exec.Command(c.Command[0], append(c.Command[1:len(c.Command):len(c.Command)], strconv.FormatInt(c.Each, 10))...)
	p.cmd.Env, p.cmd.Dir, p.cmd.SysProcAttr = []string{"GOGC=off"}, p.dir, Attributes() // no collections until it serves: they would take a fifth of its start
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.WaitDelay = written, p.said, time.Second
	if p.in, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	if err == nil {
		if p.used, err = OpenMeter(p.cmd.Process.Pid); err != nil {
			p.used = nil
			if !c.Measured {
				err = nil
			} else {
				p.end()
				err = errors.Join(err, p.cmd.Wait())
			}
		}
	}
	if closed := written.Close(); err == nil {
		err = closed
	}
	if err != nil {
		none := errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
		return nil, &StartError{Err: errors.Join(err, out.Close(), p.clean()), Memory: none}
	}
	p.out, p.left = out, &io.LimitedReader{R: out}
	p.encoder, p.decoder = gob.NewEncoder(p.in), gob.NewDecoder(p.left)
	go func() {
		p.waited = p.cmd.Wait()
		_ = p.out.Close() // whoever reads the reply gets an error
		if p.used != nil {
			p.used.Close()
		}
		_ = p.clean()
		close(p.ended)
	}()
	return p, nil
}

// A StartError is returned if no process could be started, or if it did not get ready.
type StartError struct {
	Err       error
	Directory bool // the process has no directory: scratch can't be used
	Memory    bool // the system has too little memory, or allows too few files
}

// Error returns the text of Err.
func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *StartError) Unwrap() error { return e.Err }

// greet waits until the process says that its limits are set and that it is ready.
func (p *process) greet() error {
	late := time.AfterFunc(beginTime, p.end)
	defer late.Stop()
	var hello answer
	p.left.N = maxAnswer
	err := p.decoder.Decode(&hello)
	if err == nil && hello == (answer{Scarce: hello.Scarce}) {
		p.scarce = hello.Scarce
		return nil
	}
	silent := p.silent(err)
	p.finish(silent)
	none := silent && (killed(p.waited) || p.said.says("runtime: ", "fatal error: ") || NoMemory(p.said.String())) // Go's runtime got no memory, or no thread
	return &StartError{Err: p.explain(errors.New("it did not begin")), Memory: none}
}

// clean removes the directory.
func (p *process) clean() error {
	if p.dir == "" {
		return nil
	}
	return os.RemoveAll(p.dir)
}

// over reports whether the process has ended.
func (p *process) over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// end kills the process, and does not wait until it is gone. A process has no children.
func (p *process) end() { p.ending.Do(func() { _ = p.cmd.Process.Kill() }) }

// finish ends the process, and waits until it is gone. A silent process ends by itself, and is given time to do so, since its exit code tells why.
func (p *process) finish(silent bool) {
	if silent {
		late := time.NewTimer(silentTime)
		defer late.Stop()
		select {
		case <-p.ended:
		case <-late.C:
		}
	}
	p.end()
	<-p.ended
}

// do has the process do a piece of work. After a *LostError the process is gone; otherwise it can be used again if good is true.
func (p *process) do(ctx context.Context, w *Work) (good bool, err error) {
	p.number++
	p.served++
	unbound := context.AfterFunc(ctx, p.end)
	watching := p.watch(w.Limit)
	var a answer
	err = p.encoder.Encode(&ask{Number: p.number, Size: len(w.Payload), Limit: w.Limit})
	if err == nil {
		err = p.encoder.Encode(w.Request)
	}
	if err == nil {
		_, err = p.in.Write(w.Payload)
	}
	if err == nil {
		p.left.N = maxAnswer + w.Most
		err = p.decoder.Decode(&a)
	}
	if err == nil && a.Number != p.number {
		err = errors.New("it answered a different question")
	}
	if err == nil {
		err = p.decoder.Decode(w.Reply)
	}
	broke := watching()
	silent := p.silent(err)
	if err == nil && w.Check != nil {
		good, err = w.Check(p.dir)
	} else {
		good = true
	}
	good = unbound() && good
	if err != nil {
		p.finish(silent)
		return false, p.verdict(p.explain(err), broke, w.Limit, silent)
	}
	p.last = a
	return good, nil
}

// A breach says which limit a process exceeded while it was watched.
type breach int

const (
	breachNone breach = iota
	breachCPU
	breachMemory
	breachSystem // processor time that the system used on its behalf
	breachTime
)

// watch ends the process if it exceeds a limit. The returned function stops watching, and returns which limit the process has exceeded.
func (p *process) watch(most Limit) (done func() breach) {
	stop, result := make(chan struct{}), make(chan breach, 1)
	go func() {
		tick := time.NewTicker(lookTime)
		defer tick.Stop()
		var began Use // what had been used at the first look; short work ends before that, and is never measured
		looked := false
		until := time.Now().Add(most.Time)
		for {
			select {
			case <-stop:
				result <- breachNone
				return
			case <-p.ended:
				<-stop
				result <- breachNone
				return
			case now := <-tick.C:
				broke := breachNone
				if now.After(until) {
					broke = breachTime
				} else if p.used != nil {
					u, err := p.used.Look()
					if err == nil && !looked {
						began, looked = u, true
					}
					switch {
					case err != nil: // the process is gone, or about to be
					case u.User-began.User > most.CPU:
						broke = breachCPU
					case u.User+u.System-began.User-began.System > systemTimes*most.CPU:
						broke = breachSystem
					case u.Bytes > most.Bytes:
						broke = breachMemory
					}
				}
				if broke != breachNone {
					p.end()
					<-stop
					result <- broke
					return
				}
			}
		}
	}()
	return func() breach { close(stop); return <-result }
}

// silent reports whether an error means that the process has closed its output, rather than that its answer made no sense.
func (p *process) silent(err error) bool {
	if p.left.N <= 0 {
		return false
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrClosed) || errors.Is(err, syscall.EPIPE)
}

// A LostError is returned if a process ended before its work was done, or if its answer makes no sense.
type LostError struct {
	Why error
	// Memory, CPU and System say which limit the process is known to have exceeded: that of memory, of its own processor time, or of processor time
	// including the system's on its behalf. The last can also be due to a lack of memory.
	Memory, CPU, System bool
	// Outside says that something else may have ended the process, such as the system for lack of memory. Refused says that the system refused it
	// memory or a thread. Stuck says that its time was over although it had not used up its processor time.
	Outside, Refused, Stuck bool
	// Silent says that the process ended by itself. Code is its exit code, or -1 after a signal.
	Silent bool
	Code   int
	// Fresh says that this was the first work of the process, so earlier work can't be to blame.
	Fresh bool
}

// Error returns the text of Why.
func (e *LostError) Error() string { return e.Why.Error() }

// Unwrap returns Why.
func (e *LostError) Unwrap() error { return e.Why }

// verdict says why a process is gone, and which limit its work exceeded, if that is known. silent says that the process ended by itself.
func (p *process) verdict(why error, broke breach, most Limit, silent bool) *LostError {
	e := &LostError{Why: why, Silent: silent, Fresh: p.served == 1}
	if exit, ok := errors.AsType[*exec.ExitError](p.waited); ok {
		e.Code = exit.ExitCode()
	}
	noMemory := e.Code > 1 && NoMemory(p.said.String())
	noThread := e.Code > 1 && p.said.says("pthread_create failed", "failed to create new OS thread")
	state := p.cmd.ProcessState
	switch {
	case broke == breachCPU, e.Code == exitTime, broke == breachTime && p.used == nil && state.UserTime()+state.SystemTime() >= most.CPU:
		e.CPU = true
	case broke == breachMemory, noMemory && (!p.scarce || p.said.says("goroutine stack exceeds")):
		e.Memory = true
	default:
		e.System = broke == breachSystem || e.Code == exitSystem
		e.Stuck = broke == breachTime
		e.Refused = noMemory || noThread // a thread may have got no stack
		e.Outside = e.Refused || silent && killed(p.waited)
	}
	return e
}

// killed reports whether a signal ended the process, such as the one that the system sends when it runs out of memory.
func killed(waited error) bool {
	exit, ok := errors.AsType[*exec.ExitError](waited)
	if !ok {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && slices.Contains([]syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP}, status.Signal())
}

// explain adds how the process ended, and the first line of what it said.
func (p *process) explain(err error) error {
	line, _, _ := strings.Cut(p.said.String(), "\n")
	switch {
	case line != "":
		return fmt.Errorf("%s: %w (%v): %s", p.name, err, p.waited, line)
	case p.waited != nil:
		return fmt.Errorf("%s: %w (%v)", p.name, err, p.waited)
	}
	return fmt.Errorf("%s: %w", p.name, err)
}

// A head is the beginning of what a process says on its standard error. It is safe for concurrent use.
type head struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write keeps as much as there is room for, and drops the rest.
func (t *head) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text.Write(p[:min(len(p), max(0, maxStderr-t.text.Len()))])
	return len(p), nil
}

// String returns what was kept.
func (t *head) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// says reports whether the kept output contains one of the texts.
func (t *head) says(any ...string) bool {
	kept := t.String()
	return slices.ContainsFunc(any, func(text string) bool { return strings.Contains(kept, text) })
}
