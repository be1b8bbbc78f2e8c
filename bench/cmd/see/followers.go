package main

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/toolsrv/toolsrv/bench/internal/service"
	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/client"
	"github.com/toolsrv/toolsrv/internal/admin/socket"
)

// followersCost compares a server whose log is followed by clients, which wait for lines that never come, with a server without such clients.
func followersCost(ctx context.Context, b *bench) error {
	for _, n := range []struct {
		name      string
		followers int
	}{{"follower_cost", 1}, {"followers_cost", 32}} {
		if err := b.cost(ctx, n.name, "[state]\ndirectory = 'state'", "", func(ctx context.Context, s *service.Service) (func() error, error) {
			return follows(ctx, s, n.followers)
		}); err != nil {
			return err
		}
	}
	return nil
}

// follows starts clients that wait for errors about a tool that does not exist.
func follows(ctx context.Context, s *service.Service, followers int) (leave func() error, err error) {
	over, err := client.OverSocket(filepath.Join(s.Directory, "state", socket.Name))
	if err != nil {
		return nil, err
	}
	waits, end := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	failed := make(chan error, followers)
	for range followers {
		waiting.Go(func() {
			for in := (admin.LogsArguments{Tool: "no/tool", After: 1, Wait: 10}); ; {
				answer, err := over.Do(waits, "logs", in, "")
				var page admin.Logs
				if err == nil {
					err = answer.Into(&page)
				}
				if waits.Err() != nil {
					return
				}
				if err == nil && len(page.Lines) > 0 {
					err = fmt.Errorf("follows: a line came that was not asked for: %s", page.Lines[0].Message)
				}
				if err != nil {
					failed <- err
					return
				}
				in.After = page.Last
			}
		})
	}
	return func() error {
		end()
		waiting.Wait()
		over.Close()
		select {
		case err := <-failed:
			return err
		default:
			return nil
		}
	}, nil
}
