package protocol

import (
	"context"
	"log/slog"

	"github.com/toolsrv/toolsrv/internal/mcp/internal/rpc"
	"github.com/toolsrv/toolsrv/internal/mcp/toolset"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// Call is the method that calls a tool.
const Call = "tools/call"

// tools is the feature with the list of tools, and their calls.
func (s *Server) tools() feature {
	return feature{name: "tools", capability: `{"listChanged":true}`, methods: []method{
		{name: "tools/list", eras: everywhere, answer: s.list},
		{name: Call, eras: everywhere, answer: s.call},
	}}
}

// list answers with a page of the list of tools. All answers share the page's bytes: a page can be large, and a client may read it slowly.
func (s *Server) list(ctx context.Context, r *Request) Answer {
	cursor, wrong := r.PageCursor()
	if wrong != nil {
		return r.Refuse(wrong)
	}
	page, err := s.view(r).List(cursor, r.era())
	if err != nil {
		return r.fail(ctx, err)
	}
	s.openResult(r)
	r.Out = append(r.Out, `"tools":`...)
	head := len(r.Out)
	if page.Next != "" { // letters and digits
		r.Out = append(append(append(r.Out, `,"nextCursor":"`...), page.Next...), '"')
	}
	s.closeResult(r, rpc.FreshList)
	return Answer{Text: r.Out[:head:head], Page: page.Tools, Tail: r.Out[head:]}
}

// Begin begins a call of the tool with a name. A transport that knows the name before it has read the message calls Begin itself, and reads the
// arguments into the memory of the call. Otherwise [Server.Answer] calls it. Begin reports whether the client sees such a tool.
func (s *Server) Begin(r *Request, name string) bool {
	r.sought = true
	r.Invocation, r.unknown = s.view(r).Begin(name, r.Call)
	if r.unknown == nil {
		r.Transport.SetTool(r.Invocation.Tool())
	}
	return r.unknown == nil
}

// Resume moves a call that a transport has begun to the request's present generation. It returns the same as Begin.
func (s *Server) Resume(r *Request, name string) bool {
	if r.unknown != nil {
		return s.Begin(r, name)
	}
	r.unknown = r.Invocation.Resume(s.view(r), name, r.Call)
	return r.unknown == nil
}

// Abandon ends a call that a transport has begun, if there is one, with the fault of its message.
func (r *Request) Abandon(ctx context.Context, f *rpc.Fault) {
	if r.sought && r.unknown == nil {
		_, _ = r.Invocation.Fail(ctx, &wasmtools.Error{Code: codeOf(f)})
	}
}

// call calls a tool.
func (s *Server) call(ctx context.Context, r *Request) Answer {
	if wrong := r.CheckCall(); wrong != nil {
		r.Abandon(ctx, wrong)
		return r.Refuse(wrong)
	}
	if !r.sought {
		s.Begin(r, string(r.Name))
	}
	if r.unknown != nil {
		if err := s.missing(ctx, r); err != nil {
			return r.fail(ctx, err)
		}
	}
	if r.Counted != nil {
		r.Counted()
	}
	r.Call.Arguments = r.Arguments
	var p *progress
	if r.Token != nil {
		p = &progress{r: r}
		ctx, p.cancel = context.WithCancelCause(ctx)
		defer p.cancel(nil)
		r.Call.Listener = p
	}
	result, err := r.Invocation.Run(ctx)
	r.Transport.SetTool(r.Invocation.Tool()) // for call_tool, the tool is known only now
	switch {
	case p != nil && p.failed != nil: // nobody reads the answer
		return Answer{Failed: &wasmtools.Error{Code: wasmtools.CodeCancelled, Err: p.failed}}
	case err != nil:
		return r.fail(ctx, err)
	}
	s.write(r, result)
	if !r.Invocation.Refused() { // arguments and result count as used memory until the client has the answer
		if err := r.Invocation.Hold(int64(len(r.Out))); err != nil {
			if result, err = r.Invocation.Fail(ctx, err); err != nil {
				return r.fail(ctx, err)
			}
			r.Out = nil
			s.write(r, result)
		}
	}
	return Answer{Text: r.Out, Failed: result.Failed()}
}

// write writes a result as the answer.
func (s *Server) write(r *Request, result toolset.Result) {
	meta := ""
	if r.open(); r.isModern() {
		r.Out, meta = append(r.Out, `"result":{"resultType":"complete",`...), s.identity
	} else {
		r.Out = append(r.Out, `"result":{`...)
	}
	r.Out = append(result.Append(r.Out, r.era(), meta), "}}"...)
}

// missing waits for an unknown tool, since it may appear in a moment. It returns why the tool has not appeared, or nil.
func (s *Server) missing(ctx context.Context, r *Request) error {
	if s.ready != nil {
		select {
		case <-s.ready:
		case <-ctx.Done():
		}
		s.Begin(r, string(r.Name))
	}
	if r.unknown == nil {
		return nil
	}
	if soon := s.set.NotYet(); soon != nil {
		return &toolset.Error{Code: rpc.CodeInternal, Message: soon.Message, Err: soon}
	}
	return r.unknown
}

// A progress sends a call's reports of progress to the client. It ignores what the tool logs, which is for its author and the operator. The tool
// waits until the client has taken a report, for as long as a write may take.
type progress struct {
	r      *Request
	cancel context.CancelCauseFunc
	note   []byte
	failed error // why a report could not be sent; the call is then cancelled
}

var _ wasmtools.Listener = (*progress)(nil)

// Log does nothing.
func (p *progress) Log(slog.Level, string, string) {}

// Progress sends a report.
func (p *progress) Progress(done, total float64, message string) {
	if p.failed != nil || p.r.silent.Load() {
		return
	}
	p.note = rpc.AppendProgress(p.note[:0], p.r.Token, done, total, message)
	if p.failed = p.r.Transport.Notify(p.note); p.failed != nil {
		p.cancel(p.failed)
	}
}
