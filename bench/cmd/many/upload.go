package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
)

const (
	// uploads is how many files are put in each round.
	uploads = 4
	// uploadBytes is the size of a file.
	uploadBytes = 100_000
)

// shelf has configuration tables for a server that also serves tools from a bucket.
const shelf = `
[[source]]
name = "shared"
bucket = "tools"

[admin]
upload = true
`

// uploading measures the time from the start of a put at one server until all three serve the new version of a file.
func uploading(ctx context.Context, b *bench) (err error) {
	all, end, err := b.replicas(ctx, shelf)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	var took []time.Duration
	for n := range b.Rounds*uploads + 1 {
		file, err := upload(b, n)
		if err != nil {
			return err
		}
		begun := time.Now()
		var put error
		var putting sync.WaitGroup
		putting.Go(func() {
			_, put = all[n%len(all)].over.Put(ctx, "put", admin.FileArguments{Name: "put.wasm", Directory: "shared"}, "", bytes.NewReader(file), int64(len(file)))
		})
		last, err := onAll(all, func(i int) error {
			c := all[i].caller()
			defer c.close()
			return c.comes(ctx, fmt.Sprintf("/bench/v%d", n))
		})
		putting.Wait()
		if err := errors.Join(err, put); err != nil {
			return err
		}
		if n > 0 { // before the first upload, the bucket did not exist
			took = append(took, last.Sub(begun))
		}
	}
	b.report.Explain("upload_ms: %d files of %d bytes, half of them served by all %d servers after %v, the slowest after %v",
		len(took), uploadBytes, len(all), measure.Percentile(took, 50).Round(time.Millisecond), measure.Percentile(took, 100).Round(time.Millisecond))
	b.report.Figure("upload_ms", measure.Percentile(took, 99).Seconds()*1e3)
	return nil
}

// upload returns a module of the right size with unique code and the tool bench/v<n>.
func upload(b *bench, n int) ([]byte, error) {
	small, err := b.guests.Read(guest.Small)
	if err == nil {
		small, err = guest.Variant(small, n)
	}
	if err == nil {
		small, err = guest.Describe(small, guest.Parameters, fmt.Sprint("v", n))
	}
	if err != nil {
		return nil, err
	}
	return wasmbin.SetCustom(small, "ballast", make([]byte, max(0, uploadBytes-len(small)-16)))
}

// comes calls a tool until it is served.
func (c *caller) comes(ctx context.Context, path string) error {
	late := time.After(time.Minute)
	for {
		status, body, err := c.call(ctx, path, guest.Input)
		switch {
		case err != nil:
			return err
		case status == http.StatusOK && body == guest.Output:
			return nil
		}
		select {
		case <-late:
			return fmt.Errorf("after a minute %s answers %d %.200s", path, status, body)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pollEvery):
		}
	}
}
