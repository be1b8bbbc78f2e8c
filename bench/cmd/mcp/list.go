package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/toolsrv/toolsrv/bench/internal/measure"
)

const many = 1000 // tools

// list compares tools/list with GET /tools, on one connection.
func (b *bench) list(ctx context.Context) error {
	s, err := b.serve(ctx, "[mcp]\nsearch = \"never\"\n", nil, func(tools string) error { return b.guests.Fill(tools, many) })
	if err != nil {
		return err
	}
	defer s.close()
	c, err := net.Dial("tcp", s.host())
	if err != nil {
		return err
	}
	defer c.Close()
	r := bufio.NewReaderSize(c, 1<<20)
	// Each side is looked at once, so that what is compared is a whole list.
	listed := request(s.host(), "/mcp", "tools/list", "", "")
	body, err := exchange(c, r, listed)
	if err != nil {
		return err
	}
	var answer struct {
		Result struct{ Tools []json.RawMessage }
	}
	if err := json.Unmarshal(body, &answer); err != nil || len(answer.Result.Tools) != many {
		return fmt.Errorf("tools/list has %d tools, want %d: %w", len(answer.Result.Tools), many, err)
	}
	rest := fmt.Appendf(nil, "GET /tools HTTP/1.1\r\nHost: %s\r\n\r\n", s.host())
	plain, err := exchange(c, r, rest)
	if err != nil {
		return err
	}
	var tools []json.RawMessage
	if err := json.Unmarshal(plain, &tools); err != nil || len(tools) != many {
		return fmt.Errorf("/tools has %d tools, want %d: %w", len(tools), many, err)
	}
	discard := func(request []byte) func() error {
		return func() error { return copyAnswer(io.Discard, c, r, request) }
	}
	times, err := measure.Compare(b.rounds, b.span/2, measure.Side{Name: "tools/list", Do: discard(listed)}, measure.Side{Name: "/tools", Do: discard(rest)})
	if err != nil {
		return err
	}
	b.report.Explain("%d tools: tools/list %.0f µs for %d KiB, /tools %.0f µs for %d KiB", many, times.Of(0)/1e3, len(body)>>10, times.Of(1)/1e3, len(plain)>>10)
	b.report.Figure("mcp_list_1000", times.Ratio(0, 1))
	return nil
}

// exchange sends a request and returns the body of its answer.
func exchange(c net.Conn, r *bufio.Reader, request []byte) ([]byte, error) {
	var body bytes.Buffer
	err := copyAnswer(&body, c, r, request)
	return body.Bytes(), err
}

// copyAnswer sends a request and writes the body of its answer.
func copyAnswer(body io.Writer, c net.Conn, r *bufio.Reader, request []byte) error {
	if _, err := c.Write(request); err != nil {
		return err
	}
	answer, err := http.ReadResponse(r, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
		return errors.Join(fmt.Errorf("%s: %s", answer.Status, text), err)
	}
	_, err = io.Copy(body, answer.Body)
	return err
}
