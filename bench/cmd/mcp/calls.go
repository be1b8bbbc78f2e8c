package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolsrv/toolsrv/bench/internal/gosdk"
	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/bench/internal/load"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
	"github.com/toolsrv/toolsrv/bench/internal/service"
)

// connections are as many as make requests at a time.
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

// callOf returns the text of a call of the addition.
func callOf(host, tool string) []byte {
	return request(host, "/mcp", "tools/call", tool, `"name":"`+tool+`","arguments":`+guest.Input)
}

// A side is one server and what it is sent.
type side struct {
	name string
	load load.Load
}

// calls compares tools/call with REST's POST of the same tool, and with the same addition served by others.
func (b *bench) calls(ctx context.Context) error {
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
	defer ours.close()
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
		{"mcp", load.Load{Host: ours.host(), Text: callOf(ours.host(), gosdk.Tool), Answer: sum}},
		{"rest", load.Load{Host: ours.host(), Text: load.Request(ours.host(), "/bench/add", guest.Input), Answer: guest.Output}},
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
	for range b.rounds {
		for i, s := range sides {
			s.load.Connections, s.load.Span = connections, b.span
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
			ratios := make([]float64, b.rounds)
			for r := range ratios {
				ratios[r] = rates[0][r] / rates[i][r]
			}
			b.report.Figure("mcp_vs_"+s.name, measure.Median(ratios))
		}
	}
	b.report.Figure("mcp_calls_per_s", measure.Median(rates[0]))
	return nil
}
