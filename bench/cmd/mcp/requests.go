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
	"os"
	"path/filepath"
	"strings"

	"github.com/toolsrv/toolsrv/bench/internal/gosdk"
	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/bench/internal/load"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
	"github.com/toolsrv/toolsrv/bench/internal/service"
)

// connections is how many connections make requests at a time.
const connections = 16

// request returns the text of a request over MCP 2026-07-28.
func request(host, path, method, name, params string) []byte {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	if params != "" {
		params += ","
	}
	headers := []string{"Accept: application/json, text/event-stream", "MCP-Protocol-Version: 2026-07-28", "Mcp-Method: " + method}
	if name != "" {
		headers = append(headers, "Mcp-Name: "+name)
	}
	return load.Request(host, path, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+meta+`}}`, headers...)
}

// callOf returns the text of a call of the tool add.
func callOf(host, tool string) []byte {
	return request(host, "/mcp", "tools/call", tool, `"name":"`+tool+`","arguments":`+guest.Input)
}

// A side is one server and the request that it is sent.
type side struct {
	name string
	load load.Load
}

// calls compares tools/call with a REST POST of the same tool, and with the same tool served by other programs.
func (b *bench) calls(ctx context.Context) (err error) {
	ours, err := b.serve(ctx, "", nil, func(tools string) error {
		small, err := b.guests.Read(guest.Small)
		if err != nil {
			return err
		}
		if small, err = guest.Describe(small, guest.Parameters, "add"); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(tools, "add.wasm"), small, 0o600)
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ours.Close()) }()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	sdk, err := service.StartPeer(ctx, self, gosdkCommand)
	if err != nil {
		return err
	}
	defer sdk.Stop()
	const sum = `"text":"` + guest.Output + `"`
	sides := []side{
		{"mcp", load.Load{Host: ours.Host(), Text: callOf(ours.Host(), gosdk.Tool), Answer: sum}},
		{"rest", load.Load{Host: ours.Host(), Text: load.Request(ours.Host(), "/bench/add", guest.Input), Answer: guest.Output}},
		{"gosdk", load.Load{Host: sdk.Host, Text: callOf(sdk.Host, gosdk.Tool), Answer: sum}},
	}
	if b.fastmcp != "" {
		fast, err := service.StartPeer(ctx, strings.Fields(b.fastmcp)...)
		if err != nil {
			return err
		}
		defer fast.Stop()
		sides = append(sides, side{"fastmcp", load.Load{Host: fast.Host, Text: callOf(fast.Host, gosdk.Tool), Answer: sum}})
	} else {
		b.report.Explain("mcp_vs_fastmcp is left out: there is no -fastmcp")
	}
	rates := make([][]float64, len(sides))
	for range b.Rounds {
		for i, s := range sides {
			s.load.Connections, s.load.Span = connections, b.Span
			seen, err := load.Generate(ctx, s.load, b.report.Log)
			if err != nil {
				return err
			}
			rates[i] = append(rates[i], seen.Rate)
		}
	}
	for i, s := range sides {
		b.report.Explain("%s: %.0f calls/s", s.name, measure.Median(rates[i]))
		if i > 0 {
			ratios := make([]float64, b.Rounds)
			for r := range ratios {
				ratios[r] = rates[0][r] / rates[i][r]
			}
			b.report.Figure("mcp_vs_"+s.name, measure.Median(ratios))
		}
	}
	b.report.Figure("mcp_calls_per_s", measure.Median(rates[0]))
	return nil
}

const many = 1000 // tools

// list compares tools/list with GET /tools, on one connection.
func (b *bench) list(ctx context.Context) (err error) {
	s, err := b.serve(ctx, "[mcp]\nsearch = \"never\"\n", nil, func(tools string) error { return b.guests.Fill(tools, many) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	c, err := net.Dial("tcp", s.Host())
	if err != nil {
		return err
	}
	defer c.Close()
	r := bufio.NewReaderSize(c, 1<<20)
	// Each answer is checked once, so that complete lists are compared.
	listed := request(s.Host(), "/mcp", "tools/list", "", "")
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
	rest := fmt.Appendf(nil, "GET /tools HTTP/1.1\r\nHost: %s\r\n\r\n", s.Host())
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
	times, err := measure.Compare(b.Rounds, b.Span/2, measure.Side{Name: "tools/list", Do: discard(listed)}, measure.Side{Name: "/tools", Do: discard(rest)})
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
