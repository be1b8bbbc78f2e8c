package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// A Peer is another server to compare ours with.
type Peer struct {
	Host string
	Out  io.Reader // its standard output

	pid   int
	ended chan error
}

// StartPeer runs a command that serves on a loopback port, which is its last argument, and returns once it listens.
func StartPeer(ctx context.Context, command ...string) (*Peer, error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	host := free.Addr().String()
	free.Close()
	_, port, _ := strings.Cut(host, ":")
	c := exec.Command(command[0], append(command[1:], port)...)
	c.Stderr = os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a process group with its workers, which Stop ends, too
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	p := &Peer{Host: host, Out: out, pid: c.Process.Pid, ended: make(chan error, 1)}
	go func() { p.ended <- c.Wait() }()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if conn, err := net.Dial("tcp", host); err == nil {
			conn.Close()
			return p, nil
		}
		select {
		case err := <-p.ended:
			return nil, fmt.Errorf("%s ended: %w", command[0], err)
		default:
		}
		if err := ctx.Err(); err != nil || time.Now().After(deadline) {
			p.Stop()
			return nil, errors.Join(fmt.Errorf("%s does not listen on port %s", command[0], port), err)
		}
	}
}

// Stop ends the server and all that it has started.
func (p *Peer) Stop() {
	_ = syscall.Kill(-p.pid, syscall.SIGKILL) // the processes may be gone
	<-p.ended
}
