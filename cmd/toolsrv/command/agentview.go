package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/mcp/toolset"
	"github.com/toolsrv/toolsrv/internal/modelapi"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// modelSupport is what `toolsrv check --models` says about a tool. Its members are stable.
type modelSupport struct {
	Tool    string            `json:"tool"`
	Takers  []modelapi.API    `json:"takers"`
	Reasons []modelapi.Reason `json:"reasons"` // of the others
}

// askAgents finds out what agents see of the tools of a file: which tools MCP clients are not shown, and which model APIs accept the rest. If an API
// refuses a tool even outside strict mode, that becomes a warning, unless there is one for it already.
func (f *checkedFile) askAgents(report bool) error {
	declared := f.module.Manifest().Tools
	tools := f.module.Tools()
	schemas, problems, err := shownByMCP(tools)
	if err != nil {
		return err
	}
	for i, t := range tools {
		name := declared[i].Name
		for _, p := range problems {
			if p.path == t.Path() {
				f.Warnings = append(f.Warnings, toolfile.Finding{Rule: "mcp", Tool: name, Place: "parameters", Message: p.text})
			}
		}
		parameters, shown := schemas[t.OperationID()]
		if !shown {
			parameters = t.Parameters.JSON()
		}
		support := modelSupport{Tool: name, Reasons: []modelapi.Reason{}}
		support.Reasons = append(support.Reasons, modelapi.Check(modelapi.Tool{Name: t.OperationID(), Description: t.Description, Parameters: parameters})...)
		support.Takers = modelapi.Takers(support.Reasons)
		for _, r := range support.Reasons {
			known := slices.ContainsFunc(f.Warnings, func(w toolfile.Finding) bool {
				return w.Rule == r.Rule && w.Tool == name && w.Place == r.Place
			})
			if r.Usual() && !known {
				f.Warnings = append(f.Warnings, toolfile.Finding{Rule: r.Rule, Tool: name, Place: r.Place, Message: refusers(r) + r.Message})
			}
		}
		if report {
			f.Models = append(f.Models, support)
		}
	}
	return nil
}

// A problem says why MCP clients are not shown a tool as it was written.
type problem struct{ path, text string }

// shownByMCP returns the schemas of arguments that MCP clients see, by the names of their tools, and what was changed for these clients.
func shownByMCP(tools []*wasmtools.Tool) (schemas map[string]json.RawMessage, problems []problem, err error) {
	table, err := wasmtools.NewRouteTable(tools...)
	if err != nil {
		return nil, nil, err
	}
	log := &problemLog{}
	set := toolset.New(table, toolset.Options{Search: toolset.SearchNever, Logger: slog.New(log)})
	defer set.Close()
	schemas = map[string]json.RawMessage{}
	view := set.View("", wasmtools.Self())
	for cursor := ""; ; {
		page, err := view.List(cursor, toolset.Modern)
		if err != nil {
			return nil, nil, err
		}
		var list []struct {
			Name        string
			InputSchema json.RawMessage
		}
		if err := json.Unmarshal(page.Tools, &list); err != nil {
			return nil, nil, err
		}
		for _, t := range list {
			schemas[t.Name] = t.InputSchema
		}
		if cursor = page.Next; cursor == "" {
			return schemas, log.problems, nil
		}
	}
}

// A problemLog keeps the warnings of a set of tools. It is used while the set is made, by one goroutine.
type problemLog struct{ problems []problem }

func (*problemLog) Enabled(context.Context, slog.Level) bool { return true }

func (l *problemLog) Handle(_ context.Context, r slog.Record) error {
	p := problem{text: r.Message}
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "path":
			p.path = a.Value.String()
		case "problem":
			p.text += ": " + text.Clip(a.Value.String(), 200)
		}
		return true
	})
	l.problems = append(l.problems, p)
	return nil
}

func (l *problemLog) WithAttrs([]slog.Attr) slog.Handler { return l }

func (l *problemLog) WithGroup(string) slog.Handler { return l }

// refusers returns a text that names the APIs that refuse a tool, as the beginning of a sentence.
func refusers(r modelapi.Reason) string {
	if len(r.APIs) == 0 {
		return ""
	}
	return "refused by " + apiNames(r.APIs) + ": "
}

func apiNames(apis []modelapi.API) string {
	names := make([]string, len(apis))
	for i, api := range apis {
		names[i] = string(api)
	}
	return strings.Join(names, ", ")
}

// printModels prints the output of --models: which APIs accept a tool, and for each of the other APIs the first reason for refusing it.
func printModels(w io.Writer, f *checkedFile) error {
	for _, m := range f.Models {
		line := fmt.Sprintf("models   %s: tool %s: ", oneLine(f.File), oneLine(m.Tool))
		takers := apiNames(m.Takers)
		if takers == "" {
			takers = "none"
		}
		if _, err := fmt.Fprintf(w, "%staken by %s\n", line, takers); err != nil {
			return err
		}
		for _, api := range modelapi.APIs() {
			reasons := m.against(api)
			if len(reasons) == 0 {
				continue
			}
			more := ""
			if n := len(reasons) - 1; n > 0 {
				more = fmt.Sprintf(" (and %d more)", n)
			}
			if _, err := fmt.Fprintf(w, "%srefused by %s: %s: %s%s\n", line, api, oneLine(reasons[0].Place), oneLine(reasons[0].Message), more); err != nil {
				return err
			}
		}
	}
	return nil
}

// against returns why an API refuses the tool.
func (m *modelSupport) against(api modelapi.API) []modelapi.Reason {
	var all []modelapi.Reason
	for _, r := range m.Reasons {
		if slices.Contains(r.APIs, api) {
			all = append(all, r)
		}
	}
	return all
}
