// Package supervisor speaks with the program that supervises this process, such as systemd: it takes over the sockets that the supervisor has opened
// (sd_listen_fds), and tells it the state of this process (sd_notify).
package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/text"
)

// The environment variables in which a supervisor says where to send messages, and which sockets it has opened for which process.
const (
	notifyVariable      = "NOTIFY_SOCKET"
	watchdogVariable    = "WATCHDOG_USEC"
	watchdogPIDVariable = "WATCHDOG_PID"
	countVariable       = "LISTEN_FDS"
	pidVariable         = "LISTEN_PID"
	namesVariable       = "LISTEN_FDNAMES"
)

const (
	// sendTime is how long sending a message may take: a supervisor that hangs must not hold up the server.
	sendTime = time.Second
	// maxStatus is how many bytes a status may have.
	maxStatus = 512
	// leastWatchdog is the shortest watchdog time that is accepted.
	leastWatchdog = 100 * time.Millisecond
	// mostWatchdog is the longest accepted one, so that its microseconds fit into a Duration.
	mostWatchdog = 365 * 24 * time.Hour
)

// A phase is a stage in the life of a process. It only moves forward.
type phase int

const (
	starting phase = iota
	serving
	restarting // another program takes the process over
	stopping
)

// A Supervisor is told the state of this process. If there is no supervisor, its methods do nothing. It is safe for concurrent use.
type Supervisor struct {
	// Listeners are the sockets that the supervisor has opened for this process, if any.
	Listeners []net.Listener

	socket   string        // "" if there is no supervisor
	watchdog time.Duration // 0: nobody watches
	environ  []string      // the variables for a process that replaces this one
	logger   *slog.Logger

	mu    sync.Mutex // guards what follows, and the order of messages
	phase phase
	deaf  bool // the last message could not be sent
}

// Find finds the supervisor of this process in the environment, and removes the variables from it, since they are for this process alone. It must be
// called before another process or goroutine is started. An error means that a socket is not what it should be; then nothing is open. A supervisor
// that can't be reached is only logged, since a server should run without one, too.
func Find(logger *slog.Logger) (*Supervisor, error) {
	s := &Supervisor{socket: os.Getenv(notifyVariable), logger: logger}
	watchdog, watched := os.Getenv(watchdogVariable), os.Getenv(watchdogPIDVariable)
	for _, name := range []string{notifyVariable, watchdogVariable, watchdogPIDVariable} {
		if value, found := os.LookupEnv(name); found {
			s.environ = append(s.environ, name+"="+value)
		}
	}
	var err error
	s.Listeners, err = listeners()
	for _, name := range []string{notifyVariable, watchdogVariable, watchdogPIDVariable, countVariable, pidVariable, namesVariable} {
		err = errors.Join(err, os.Unsetenv(name))
	}
	if err != nil {
		for _, l := range s.Listeners {
			_ = l.Close()
		}
		return nil, err
	}
	if s.socket != "" && s.socket[0] != '/' && s.socket[0] != '@' {
		logger.Warn("the supervisor can't be told anything: "+notifyVariable+" is neither an absolute path nor an abstract name", "socket", text.Short(s.socket))
		s.socket = ""
	}
	if s.socket != "" && watchdog != "" && (watched == "" || watched == strconv.Itoa(os.Getpid())) {
		usec, err := strconv.ParseUint(watchdog, 10, 63)
		if err != nil || usec < uint64(leastWatchdog.Microseconds()) || usec > uint64(mostWatchdog.Microseconds()) {
			logger.Warn("the supervisor's watchdog is ignored: "+watchdogVariable+" is not a usable number of microseconds", "value", text.Short(watchdog))
		} else {
			s.watchdog = time.Duration(usec) * time.Microsecond
			// A process that replaces another one has the whole watchdog time until it must answer.
			s.tell("WATCHDOG=1")
		}
	}
	return s, nil
}

// Environ returns the variables for a process that replaces this one, with the same process ID.
func (s *Supervisor) Environ() []string { return s.environ }

// Ready tells the supervisor that the process is ready.
func (s *Supervisor) Ready() {
	s.enter(serving, "READY=1", "STATUS=ready")
}

// Reload tells the supervisor that the configuration is being read again, runs do, which reads it, and then tells the supervisor the outcome.
func (s *Supervisor) Reload(do func() error) error {
	// A process that is still starting, or is stopping, does not become ready by a reload.
	s.within(serving, append(reloading(), "STATUS=reading the configuration")...)
	err := do()
	status := "ready"
	if err != nil {
		status = "the configuration stays as it was: " + err.Error()
	}
	s.within(serving, "READY=1", "STATUS="+line(status))
	return err
}

// Restarting tells the supervisor that this process executes another program, which will say when it is ready. The process ID stays the same, so no
// new one is sent.
func (s *Supervisor) Restarting() {
	s.enter(restarting, append(reloading(), "STATUS=restarting")...)
}

// Stopping tells the supervisor that the process is stopping, and within which time.
func (s *Supervisor) Stopping(limit time.Duration) {
	s.enter(stopping, "STOPPING=1", fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", limit.Microseconds()), "STATUS=stopping")
}

// Watch notifies the supervisor's watchdog as often as necessary, until ctx ends. It calls answers before each notification, and sends none while
// that returns an error: so the supervisor ends a process that runs but does not answer.
func (s *Supervisor) Watch(ctx context.Context, answers func(context.Context) error) {
	if s.watchdog == 0 {
		return
	}
	// answers may take until three quarters of the time are over. If it fails quickly, there is time for more tries.
	pause, again, patience := s.watchdog/2, s.watchdog/16, s.watchdog/4
	timer := time.NewTimer(s.watchdog / 4) // a starting server may not answer yet
	defer timer.Stop()
	for failed := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		err := ask(ctx, patience, answers)
		switch {
		case err == nil:
			s.mu.Lock()
			s.tell("WATCHDOG=1")
			s.mu.Unlock()
			timer.Reset(pause)
		case ctx.Err() != nil:
			return
		default:
			if !failed {
				s.logger.Error("the server does not answer its own requests: the watchdog is not notified, and will end the server if this goes on", "error", err, "within", s.watchdog.String())
			}
			timer.Reset(again)
		}
		if failed && err == nil {
			s.logger.Info("the server answers its own requests again")
		}
		failed = err != nil
	}
}

func ask(ctx context.Context, patience time.Duration, answers func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return answers(ctx)
}

// enter tells the supervisor that a phase begins, unless that phase or a later one has begun already.
func (s *Supervisor) enter(next phase, message ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase < next {
		s.phase = next
		s.tell(message...)
	}
}

// within sends a message that is only right in one phase.
func (s *Supervisor) within(now phase, message ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase == now {
		s.tell(message...)
	}
}

// tell sends a message with these lines. s.mu is held, or nobody else has s yet.
func (s *Supervisor) tell(message ...string) {
	if s.socket == "" {
		return
	}
	err := send(s.socket, strings.Join(message, "\n"))
	switch {
	case err != nil && !s.deaf:
		s.logger.Warn("the supervisor can't be told the server's state", "socket", text.Short(s.socket), "message", message[0], "error", err)
	case err == nil && s.deaf:
		s.logger.Info("the supervisor can be told the server's state again")
	}
	s.deaf = err != nil
}

// send sends a datagram. It connects for each one: that costs little, and leaves no descriptor open for a process that replaces this one.
func send(socket, message string) error {
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return cause(err)
	}
	err = conn.SetWriteDeadline(time.Now().Add(sendTime))
	if err == nil {
		_, err = conn.Write([]byte(message))
	}
	return cause(errors.Join(err, conn.Close()))
}

// cause returns an error without the address, which the line already has.
func cause(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}

// reloading returns the lines for a reload that begins now. A supervisor that has requested a reload compares the time with that of its request.
func reloading() []string {
	lines := []string{"RELOADING=1"}
	if usec, known := monotonic(); known {
		lines = append(lines, fmt.Sprintf("MONOTONIC_USEC=%d", usec))
	}
	return lines
}

// line returns a text as one short line: a second line would be another message.
func line(s string) string {
	return strings.ReplaceAll(text.Escape(text.ClipEscaped(s, maxStatus)), "\n", " ")
}
