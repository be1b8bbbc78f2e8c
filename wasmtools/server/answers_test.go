package server_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/wasmtools/gotool"
)

// TestAnswers calls Answers on several servers: some that listen on various addresses, one whose only place is taken and which is then
// stopped while a call runs, and one that accepts no connections and is then closed.
func TestAnswers(t *testing.T) {
	t.Parallel()
	ask := func(r *running, within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		return r.Answers(ctx)
	}
	for _, address := range []string{"127.0.0.1:0", ":0", "0.0.0.0:0"} {
		c := settings(t)
		c.Server.Addresses, c.Server.Hosts, c.Auth.Required = []string{address}, []string{"tools.example.com"}, true
		if err := ask(start(t, c), patience); err != nil {
			t.Errorf("a server on %s: %v", address, err)
		}
	}

	begun, end := make(chan struct{}), make(chan struct{})
	r := build(t, settings(t), gotool.New("own/held", "Waits.", func(context.Context, struct{}) (string, error) {
		close(begun)
		<-end
		return "done", nil
	}))
	r.SetConnections(1, 1)
	run(t, r)
	r.log.Wait(t, `"msg":"ready"`)
	go func() { _, _, _ = r.call("/own/held", "") }()
	<-begun
	if err := ask(r, patience); err != nil {
		t.Errorf("a server whose only place is taken: %v", err)
	}
	r.stop()
	r.log.Wait(t, `"msg":"draining"`)
	if err := ask(r, patience); err != nil {
		t.Errorf("a server that is stopping: %v", err)
	}
	close(end)
	if err := r.result(); err != nil {
		t.Error(err)
	}

	idle := build(t, settings(t))
	t.Cleanup(func() { _ = errors.Join(idle.Close(), idle.of.Close()) })
	if err := ask(idle, 50*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a server that accepts no connections: got %v, want a timeout", err)
	}
	_ = idle.Close()
	if err := ask(idle, patience); !errors.As(err, new(*net.OpError)) {
		t.Errorf("a closed server: got %v, want an error that it can't be reached", err)
	}
}
