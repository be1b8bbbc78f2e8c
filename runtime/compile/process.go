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
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// lookTime is how often a process is looked at while it compiles.
	lookTime = 25 * time.Millisecond
	// patience is how long a process may take for each second of processor time that it is allowed, and patienceBase is what it may take besides: a
	// busy machine lets it wait, and one that hangs uses none.
	patience     = 30
	patienceBase = time.Minute

	maxReply  = 64 << 10 // bytes
	maxStderr = 4 << 10
)

// A process compiles modules. Only one goroutine uses it at a time, but anybody may end it.
type process struct {
	cmd     *exec.Cmd
	scratch string // where its directory is
	dir     string
	in      io.WriteCloser
	out     *os.File
	said    *head
	encoder *gob.Encoder
	decoder *gob.Decoder
	reply   *io.LimitedReader
	number  uint64
	served  int   // modules that it was given
	memory  int64 // bytes that it has
	timer   *time.Timer

	ending sync.Once
	ended  chan struct{} // closed when it is gone, with its directory; then waited is set
	waited error
}

// A lostError is that a process ended, or made no sense, before it was done.
type lostError struct {
	why     error
	tooMuch *TooMuch // if it broke a bound
	killed  bool     // by the system, which wants its memory for others
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
	c.cmd.Env, c.cmd.Dir, c.cmd.SysProcAttr = []string{}, c.dir, attributes()
	c.cmd.Stdout, c.cmd.Stderr, c.cmd.WaitDelay = written, c.said, time.Second
	if c.in, err = c.cmd.StdinPipe(); err == nil {
		err = c.cmd.Start()
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
		_ = c.out.Close() // whoever reads a reply learns that there is none
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
	if err == nil && hello == (reply{}) {
		return nil
	}
	c.end()
	<-c.ended
	if c.killed(err) {
		return fmt.Errorf("%w: a process was killed before it compiled", ErrNoMemory)
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

// end ends the process, and does not wait for that.
func (c *process) end() { c.ending.Do(func() { kill(c.cmd.Process) }) }

// compile has the process compile a module. After a *lostError it is gone; otherwise it can go on.
func (c *process) compile(module []byte, most Limit, memory int64) (File, error) {
	c.number++
	c.served++
	watching := c.watch(most, memory)
	var a reply
	err := c.encoder.Encode(&request{Number: c.number, Module: module, Keep: c.dir != "", CPU: most.CPU})
	if err == nil {
		c.reply.N = maxReply
		err = c.decoder.Decode(&a)
	}
	broke := watching()
	if err == nil && a.Number != c.number {
		err = errors.New("it answers another question")
	}
	var f File
	if err == nil && a.Kind == 0 && c.dir != "" {
		f, err = c.fetch(&a)
	}
	if err != nil {
		c.end()
		<-c.ended
		return File{}, &lostError{c.explain(err), c.verdict(broke, most, memory), broke == breachNone && c.killed(err)}
	}
	c.memory = a.Memory
	switch a.Kind {
	case 0:
		return f, nil
	case wrongDisk:
		return File{}, fmt.Errorf("%w: %s", ErrDisk, a.Wrong)
	case wrongMemory:
		return File{}, fmt.Errorf("%w: %s", ErrNoMemory, a.Wrong)
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
		return f, fmt.Errorf("it says that it left %d bytes: there is %v with %d", a.Size, info.Mode(), info.Size())
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
		return f, errors.New("the code that it left is not what it says")
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
	breachTime
)

// watch ends the process if it breaks a bound, until the returned function is called, which says whether it did.
func (c *process) watch(most Limit, memory int64) (done func() breach) {
	stop, result := make(chan struct{}), make(chan breach, 1)
	go func() {
		tick := time.NewTicker(lookTime)
		defer tick.Stop()
		began, looked := time.Duration(0), false // at the first look, so that what is soon done is not looked at
		until := time.Now().Add(patienceBase + patience*most.CPU)
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
				cpu, resident, err := used(c.cmd.Process.Pid)
				broke := breachNone
				if err == nil && !looked {
					began, looked = cpu, true
				}
				switch {
				case now.After(until):
					broke = breachTime
				case err != nil: // it is gone, or about to be
				case cpu-began > most.CPU:
					broke = breachCPU
				case resident > memory:
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

// verdict says which bound a module broke whose process is gone, or nil if it is not known to have broken one.
func (c *process) verdict(broke breach, most Limit, memory int64) *TooMuch {
	exit := (*exec.ExitError)(nil)
	code := -1
	if errors.As(c.waited, &exit) {
		code = exit.ExitCode()
	}
	switch {
	case broke == breachCPU, code == exitTime:
		return &TooMuch{CPU: most.CPU}
	case broke == breachMemory, code == 2 && c.said.saysNoMemory():
		return &TooMuch{Bytes: memory, CPU: most.CPU}
	}
	return nil
}

// killed reports whether the process was killed before it said anything, by what came of asking it: the system has no memory then.
func (c *process) killed(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](c.waited)
	return ok && !exit.Exited() && (errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) || errors.Is(err, syscall.EPIPE))
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

// saysNoMemory reports whether Go's runtime gave up because the system refused it memory, or because a stack took too much.
func (t *head) saysNoMemory() bool {
	s := t.String()
	return strings.Contains(s, "out of memory") || strings.Contains(s, "cannot allocate memory") || strings.Contains(s, "stack overflow")
}
