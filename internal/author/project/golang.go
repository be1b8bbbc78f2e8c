package project

import "context"

const getGo = "install Go 1.24 or later from https://go.dev/dl/"

// golang builds file with Go. Without -trimpath and -buildvcs=false the same source would give a different file on another machine or at another
// commit.
func (c *compiler) golang(ctx context.Context, file string) error {
	if err := find("go", getGo); err != nil {
		return err
	}
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s", "-o", file}
	if !c.project.Plain {
		args = append(args, "-buildmode=c-shared") // a reactor: it can be called again and again
	}
	return c.run(ctx, []string{"GOOS=wasip1", "GOARCH=wasm"}, nil, "go", append(args, ".")...)
}
