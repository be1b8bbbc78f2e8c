package project

import "context"

const getGo = "install Go 1.24 or later from https://go.dev/dl/"

// golang builds file with Go. Without -trimpath and -buildvcs the same source would make another file on another
// machine or at another commit.
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

// tinygo builds file with TinyGo. A sandbox lives for one call, so nothing needs collecting.
func (c *compiler) tinygo(ctx context.Context, file string) error {
	if err := find("tinygo", "install TinyGo 0.36 or later from https://tinygo.org/getting-started/install/"); err != nil {
		return err
	}
	if err := find("go", "TinyGo needs it; "+getGo); err != nil {
		return err
	}
	target := c.project.target
	if target == "" {
		target = "wasip1"
	}
	args := []string{"build", "-target=" + target, "-gc=leaking", "-opt=2", "-no-debug", "-o", file}
	if !c.project.Plain { // without goroutines, for which TinyGo rewrites all code, a call on wasip1 takes a tenth of the time
		args = append(args, "-scheduler=none", "-buildmode=c-shared")
	}
	return c.run(ctx, nil, nil, "tinygo", append(args, ".")...)
}
