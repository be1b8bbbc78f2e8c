package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/measure"
)

// stdio measures how long `toolsrv mcp` takes from its start to its first answer, which lists the example tools. The tools' code is in the cache, and
// each answer must list all tools.
func (b *bench) stdio(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(b.tools, "*.wasm"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("%s has no tools: %w", b.tools, errors.Join(err, os.ErrNotExist))
	}
	directory, err := filepath.Abs(b.tools)
	if err != nil {
		return err
	}
	_, _, all, err := b.firstAnswer(ctx, directory) // fills the cache
	if err != nil {
		return err
	}
	var times, busy []float64
	for range 3 * b.Rounds {
		took, processor, tools, err := b.firstAnswer(ctx, directory)
		if err != nil {
			return err
		}
		if tools != all || tools < len(files) {
			return fmt.Errorf("%d files have %d tools, and once had %d", len(files), all, tools)
		}
		times, busy = append(times, took.Seconds()*1e3), append(busy, processor.Seconds()*1e3)
	}
	b.report.Explain("toolsrv mcp on %d files with %d tools, warm cache: start to the answer of tools/list in %.0f ms (median of %d starts); it took %.0f ms of processor time from start to end",
		len(files), all, measure.Median(times), len(times), measure.Median(busy))
	b.report.Figure("stdio_start_ms", measure.Median(times))
	return nil
}

// firstAnswer starts the server over stdio, and returns how long it took to list its tools, how much processor time it used in total, and
// how many tools there are.
func (b *bench) firstAnswer(ctx context.Context, directory string) (took, processor time.Duration, tools int, err error) {
	c := exec.CommandContext(ctx, b.server, "mcp", directory)
	in, err := c.StdinPipe()
	if err != nil {
		return 0, 0, 0, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return 0, 0, 0, err
	}
	begin := time.Now()
	if err := c.Start(); err != nil {
		return 0, 0, 0, err
	}
	defer func() {
		err = errors.Join(err, in.Close(), c.Wait()) // the server ends when stdin does
		processor = c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	}()
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}` + "\n"
	if _, err := in.Write([]byte(list)); err != nil {
		return 0, 0, 0, err
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	took = time.Since(begin)
	if err != nil {
		return 0, 0, 0, err
	}
	var answer struct {
		Result struct{ Tools []json.RawMessage }
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		return 0, 0, 0, err
	}
	if len(answer.Result.Tools) == 0 {
		return 0, 0, 0, fmt.Errorf("the answer has no tools: %.200s", line)
	}
	return took, 0, len(answer.Result.Tools), nil
}
