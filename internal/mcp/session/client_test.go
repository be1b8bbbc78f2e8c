package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsrv/toolsrv/internal/mcp"
	"github.com/toolsrv/toolsrv/internal/mcp/session"
)

// TestClient makes go-sdk's own client do what agents do, over both transports, in the newest version that it knows and in one
// that has sessions.
func TestClient(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"HTTP", "stdio"} {
		for _, version := range []string{modern, legacy} {
			t.Run(transport+" "+version, func(t *testing.T) {
				t.Parallel()
				a := newApp(t)
				if transport == "HTTP" {
					h := a.http(t, mcp.Options{})
					tryClient(t, a, version, &sdk.StreamableClientTransport{Endpoint: h.url})
					return
				}
				in, toServer := io.Pipe()
				fromServer, out := io.Pipe()
				ended := make(chan error)
				go func() {
					err := session.Stdio(t.Context(), a.set, in, out, session.StdioOptions{})
					_ = out.Close()
					ended <- err
				}()
				tryClient(t, a, version, &sdk.IOTransport{Reader: fromServer, Writer: toServer})
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func tryClient(t *testing.T, a *app, version string, transport sdk.Transport) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	progress, changed := make(chan *sdk.ProgressNotificationParams, 10), make(chan struct{}, 10)
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { progress <- r.Params },
		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { changed <- struct{}{} },
	})
	s, err := client.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	list, err := s.ListTools(ctx, nil)
	if err != nil || len(list.Tools) != 7 || list.NextCursor != "" {
		t.Fatalf("%d tools, %v", len(list.Tools), err)
	}
	result, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "math-add", Arguments: map[string]any{"a": 2}})
	if structured, _ := json.Marshal(result.StructuredContent); err != nil || result.IsError || string(structured) != `{"sum":3}` {
		t.Errorf("got %s, %v", structured, err)
	}
	if result, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "math-add", Arguments: map[string]any{"a": "two"}}); err != nil || !result.IsError {
		t.Errorf("wrong arguments: %+v, %v", result, err)
	}
	if _, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "none"}); err == nil {
		t.Error("an unknown tool can be called")
	}

	steps := &sdk.CallToolParams{Name: "steps", Meta: sdk.Meta{}}
	steps.SetProgressToken("token")
	if _, err := s.CallTool(ctx, steps); err != nil {
		t.Error(err)
	}
	if p := <-progress; p.Progress != 1 || p.Total != 4 || p.ProgressToken != "token" {
		t.Errorf("progress %+v", p)
	}

	short, stop := context.WithCancel(ctx)
	go func() { <-a.waiting; stop() }()
	if _, err := s.CallTool(short, &sdk.CallToolParams{Name: "wait"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := <-a.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}

	// The client opens its stream when it likes. In a session, it is also notified of earlier changes.
	time.Sleep(100 * time.Millisecond)
	a.put(t, "new")
	select {
	case <-changed:
	case <-ctx.Done():
		t.Error("the client was not notified of the change")
	}
	if list, err := s.ListTools(ctx, nil); err != nil || len(list.Tools) != 8 {
		t.Errorf("%+v, %v", list, err)
	}
}
