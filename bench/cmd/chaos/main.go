// Command chaos runs three servers with one state behind a balancer, under load, while their parts fail one after another: it kills and stops
// servers and NATS nodes, cuts them off from each other, slows their connections, fills disks and sets clocks. Meanwhile operators change tokens,
// switches and files, and clients continue their sessions. It prints tables of what was lost, and how long it took until all servers agreed again.
// It exits with 1 if something was lost or forgotten that should not have been, or if an answer was wrong.
//
//	chaos [-server BINARY] [-old BINARY] [-late BINARY] [-late-node BINARY] [-for TIME] [-only NAME,...]
//
// `make chaos` builds what is needed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/cluster"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
)

func main() {
	os.Exit(measure.Main("chaos", run, map[string]measure.Child{cluster.Command: cluster.Child, inside: runInside}))
}

// inside is the first argument of a process that may mount disks that no other process sees.
const inside = "inside"

// run runs this program again in a process that can mount disks. If no such process can be made, it makes the run here.
func run(ctx context.Context, arguments []string, out, log io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, append([]string{inside}, arguments...)...)
	cmd.Stdout, cmd.Stderr = out, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	if err := cmd.Start(); err != nil {
		fmt.Fprintf(log, "# no disk can be mounted here, so none will be full: %v\n", err)
		return chaos(ctx, arguments, out, log, false)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer stop()
	if err := cmd.Wait(); err != nil {
		return errors.New("something was not as it should be") // the other process has said what went wrong
	}
	return nil
}

func runInside(arguments []string, out io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return chaos(ctx, arguments, out, os.Stderr, true)
}

// Options are the settings of a run.
type options struct {
	server string // the binary
	old    string // the binary of the version that servers are upgraded from; if empty, none are
	late   string // the binary of a server whose clock is five minutes ahead; if empty, there is none
	node   string // this program, with a clock that is five minutes ahead; if empty, there is none
	length time.Duration
	only   []string
	mounts bool // disks can be mounted
	log    io.Writer
}

// chaos makes one run.
func chaos(ctx context.Context, arguments []string, out, log io.Writer, mounts bool) error {
	o := options{mounts: mounts, log: log}
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.StringVar(&o.server, "server", "bin/toolsrv", "the server's binary")
	flags.StringVar(&o.old, "old", "", "the binary of an older version, from which the servers are upgraded first")
	flags.StringVar(&o.late, "late", "", "the binary of a server whose clock is five minutes ahead")
	flags.StringVar(&o.node, "late-node", "", "this program's binary, whose clock is five minutes ahead, for a node")
	flags.DurationVar(&o.length, "for", 10*time.Minute, "about how long it takes; below five minutes each fault strikes one server or node, otherwise each of them")
	only := flags.String("only", "", "only faults whose names begin with one of these, separated by commas")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	w, err := begin(ctx, o)
	if err != nil {
		return err
	}
	rows, err := w.run(ctx)
	table(out, rows)
	tableOfTrials(out, w.beside, rows)
	err = errors.Join(err, w.close())
	for _, r := range rows {
		for _, wrong := range r.wrong {
			err = errors.Join(err, fmt.Errorf("%s: %s", r.name, wrong))
		}
	}
	return err
}
