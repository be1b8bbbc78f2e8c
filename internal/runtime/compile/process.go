package compile

import (
	"bytes"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/toolsrv/toolsrv/internal/apart"
)

const (
	// lookTime is how often a process is looked at while it compiles.
	lookTime = 25 * time.Millisecond
	// patience is how long a process may take for each second of its processor time, and patienceBase what it may take besides. On a busy machine it
	// waits, and a process that hangs uses no processor time.
	patience     = 30
	patienceBase = time.Minute

	// systemTimes is how many times the processor time that a module is allowed the process may take with what the system does for it.
	systemTimes = 2

	// silentTime is how long a process may take to end that says nothing any more.
	silentTime = time.Second

	maxReply  = 64 << 10 // bytes
	maxStderr = 4 << 10
)

// A process compiles modules. Only one goroutine uses it at a time, but anybody may end it.
type process struct {
	cmd     *exec.Cmd
	scratch string // where its directory is
	dir     string
	in      io.WriteCloser
	used    *apart.Meter
	out     *os.File
	said    *head
	encoder *gob.Encoder
	decoder *gob.Decoder
	reply   *io.LimitedReader
	scarce  bool // the system may refuse it memory that it is allowed
	number  uint64
	served  int   // modules that it was given
	memory  int64 // bytes that it has
	timer   *time.Timer

	ending sync.Once
	ended  chan struct{} // closed when it is gone, with its directory; then waited is set
	waited error
}

// A lostError means that a process ended, or answered nonsense, before it was done.
type lostError struct {
	why     error
	tooMuch *TooMuch // if it broke a bound
	system  bool     // otherwise: the system may have ended it, or refused it something
	stuck   bool     // it had all of the time that it is given
}

// again reports whether the module is to be tried in a new process. fresh says that the last one was new.
func (e *lostError) again(fresh bool) bool {
	switch {
	case e.stuck:
		return false
	case e.tooMuch == nil:
		return true // it may have been another's fault
	}
	return e.tooMuch.Memory && !fresh // what earlier modules have left took some of the memory
}

// Error says why.
func (e *lostError) Error() string { return e.why.Error() }

// Unwrap returns the cause.
func (e *lostError) Unwrap() error { return e.why }

// start starts a process with nothing of this one's environment, in an empty directory below scratch.
func start(command []string, scratch string, memory int64) (c *process, err error) {
	c = &process{scratch: scratch, said: &head{}, ended: make(chan struct{})}
	if scratch != "" {
		if c.dir, err = os.MkdirTemp(scratch, "helper-"); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDisk, err)
		}
	}
	out, written, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoMemory, errors.Join(err, c.clean()))
	}
	c.cmd = exec.Command(command[0], append(command[1:len(command):len(command)], strconv.FormatInt(memory, 10))...)
	c.cmd.Env, c.cmd.Dir, c.cmd.SysProcAttr = []string{}, c.dir, apart.Attributes()
	c.cmd.Stdout, c.cmd.Stderr, c.cmd.WaitDelay = written, c.said, time.Second
	if c.in, err = c.cmd.StdinPipe(); err == nil {
		err = c.cmd.Start()
	}
	if err == nil {
		if c.used, err = apart.OpenMeter(c.cmd.Process.Pid); err != nil {
			c.end()
			err = errors.Join(err, c.cmd.Wait())
		}
	}
	if closed := written.Close(); err == nil {
		err = closed
	}
	if err != nil {
		kind := ErrUnavailable
		if errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			kind = ErrNoMemory
		}
		return nil, fmt.Errorf("%w: %w", kind, errors.Join(err, out.Close(), c.clean()))
	}
	c.out, c.reply = out, &io.LimitedReader{R: out}
	c.encoder, c.decoder = gob.NewEncoder(c.in), gob.NewDecoder(c.reply)
	go func() {
		c.waited = c.cmd.Wait()
		_ = c.out.Close() // the reader of a reply learns that there is none
		c.used.Close()
		_ = c.clean()
		close(c.ended)
	}()
	return c, nil
}

// greet waits until the process says that it is bounded and ready.
func (c *process) greet() error {
	late := time.AfterFunc(patienceBase, c.end)
	defer late.Stop()
	var hello reply
	c.reply.N = maxReply
	err := c.decoder.Decode(&hello)
	if c.scarce = hello.Scarce; err == nil && hello == (reply{Scarce: c.scarce}) {
		return nil
	}
	silent := c.silent(err)
	c.finish(silent)
	if silent && (killed(c.waited) || c.said.says("runtime: ", "fatal error: ") || apart.NoMemory(c.said.String())) { // Go's runtime got no memory, or no thread
		return fmt.Errorf("%w: %w", ErrNoMemory, c.explain(errors.New("it did not begin")))
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, c.explain(errors.New("it did not begin")))
}

// clean removes the directory.
func (c *process) clean() error {
	if c.dir == "" {
		return nil
	}
	return os.RemoveAll(c.dir)
}

// over reports whether the process has gone.
func (c *process) over() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// end ends the process, and does not wait for that. It has no children.
func (c *process) end() { c.ending.Do(func() { _ = c.cmd.Process.Kill() }) }

// finish ends the process, and waits for that. One that is silent is ending: how it does tells why.
func (c *process) finish(silent bool) {
	if silent {
		late := time.NewTimer(silentTime)
		defer late.Stop()
		select {
		case <-c.ended:
		case <-late.C:
		}
	}
	c.end()
	<-c.ended
}

// compile makes the process compile a module. After a *lostError it is gone; otherwise it can go on.
func (c *process) compile(module []byte, most Limit, base time.Duration) (File, error) {
	c.number++
	c.served++
	watching := c.watch(most, base+patience*most.CPU)
	var a reply
	err := c.encoder.Encode(&request{Number: c.number, Size: len(module), Keep: c.dir != "", CPU: most.CPU, Bytes: most.Bytes})
	if err == nil {
		_, err = c.in.Write(module)
	}
	if err == nil {
		c.reply.N = maxReply
		err = c.decoder.Decode(&a)
	}
	broke := watching()
	silent := c.silent(err)
	if err == nil && a.Number != c.number {
		err = errors.New("it answered a different question")
	}
	var f File
	if err == nil && a.Kind == 0 && c.dir != "" {
		f, err = c.fetch(&a)
	}
	if err != nil {
		c.finish(silent)
		return File{}, c.verdict(c.explain(err), broke, most, silent)
	}
	c.memory = a.Memory
	switch a.Kind {
	case 0:
		return f, nil
	case wrongDisk:
		return File{}, fmt.Errorf("%w: %s", ErrDisk, a.Wrong)
	case wrongMemory:
		return File{}, fmt.Errorf("%w: %s", ErrNoMemory, a.Wrong)
	case wrongSize:
		return File{}, &TooMuch{Limit: most, Memory: true}
	}
	return File{}, errors.New(a.Wrong)
}

// fetch reads the code that the process says it has left, and removes it. What is not as the process says is an error.
func (c *process) fetch(a *reply) (f File, err error) {
	if !filepath.IsLocal(a.Name) || a.Size <= 0 || a.Size > mostCode {
		return f, fmt.Errorf("it says that it left %d bytes in %.100q", a.Size, a.Name)
	}
	root, err := os.OpenRoot(c.dir)
	if err != nil {
		return f, err
	}
	defer root.Close()
	info, err := root.Lstat(a.Name)
	if err != nil {
		return f, err
	}
	if !info.Mode().IsRegular() || info.Size() != a.Size {
		return f, fmt.Errorf("it says that it left %d bytes, but left %v with %d", a.Size, info.Mode(), info.Size())
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

// mostCode is the size of a module's code, in bytes.
const mostCode = 768 << 20

// A breach is which bound a process broke while it was watched.
type breach int

const (
	breachNone breach = iota
	breachCPU
	breachMemory
	breachSystem // processor time that the system took for it, as it does where memory is short
	breachTime
)

// watch ends the process if it breaks a bound, until the returned function is called, which says whether it did.
func (c *process) watch(most Limit, patience time.Duration) (done func() breach) {
	stop, result := make(chan struct{}), make(chan breach, 1)
	go func() {
		tick := time.NewTicker(lookTime)
		defer tick.Stop()
		var began apart.Use // at the first look, so that short compilations are not looked at
		looked := false
		until := time.Now().Add(patience)
		for {
			select {
			case <-stop:
				result <- breachNone
				return
			case <-c.ended:
				<-stop
				result <- breachNone
				return
			case now := <-tick.C:
				u, err := c.used.Look()
				if err == nil && !looked {
					began, looked = u, true
				}
				broke := breachNone
				switch {
				case now.After(until):
					broke = breachTime
				case err != nil: // it is gone, or about to be
				case u.User-began.User > most.CPU:
					broke = breachCPU
				case u.User+u.System-began.User-began.System > systemTimes*most.CPU:
					broke = breachSystem
				case u.Bytes > most.Bytes:
					broke = breachMemory
				}
				if broke != breachNone {
					c.end()
					<-stop
					result <- broke
					return
				}
			}
		}
	}()
	return func() breach { close(stop); return <-result }
}

// silent reports whether an error is that the process ended, and not that it made no sense.
func (c *process) silent(err error) bool {
	if c.reply.N <= 0 {
		return false
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrClosed) || errors.Is(err, syscall.EPIPE)
}

// verdict says why a process is gone, and which bound its module broke, if it is known to have broken one. silent says that it ended by
// itself.
func (c *process) verdict(why error, broke breach, most Limit, silent bool) *lostError {
	code := -1
	if exit := (*exec.ExitError)(nil); errors.As(c.waited, &exit) {
		code = exit.ExitCode()
	}
	noMemory := code == 2 && apart.NoMemory(c.said.String())
	noThread := code == 2 && c.said.says("pthread_create failed", "failed to create new OS thread")
	switch {
	case broke == breachCPU, code == exitTime:
		return &lostError{why: why, tooMuch: &TooMuch{Limit: most}}
	case broke == breachMemory, noMemory && !c.scarce:
		return &lostError{why: why, tooMuch: &TooMuch{Limit: most, Memory: true}}
	}
	stuck := broke == breachTime || broke == breachSystem
	return &lostError{why: why, system: stuck || noMemory || noThread || code == exitSystem || silent && killed(c.waited), stuck: stuck}
}

// killed reports whether a process was killed, as the system does where it has no memory.
func killed(waited error) bool {
	exit := (*exec.ExitError)(nil)
	if !errors.As(waited, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// explain adds how the process ended, and the first line of what it said.
func (c *process) explain(err error) error {
	line, _, _ := strings.Cut(c.said.String(), "\n")
	switch {
	case line != "":
		return fmt.Errorf("a process that compiles: %w (%v): %s", err, c.waited, line)
	case c.waited != nil:
		return fmt.Errorf("a process that compiles: %w (%v)", err, c.waited)
	}
	return fmt.Errorf("a process that compiles: %w", err)
}

// A head is the beginning of what a process says on its standard error. It is safe for concurrent use.
type head struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write keeps as much as there is room for, and takes the rest.
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

// says reports whether the kept output has one of the texts.
func (t *head) says(any ...string) bool {
	kept := t.String()
	return slices.ContainsFunc(any, func(text string) bool { return strings.Contains(kept, text) })
}
