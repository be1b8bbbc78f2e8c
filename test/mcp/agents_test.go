package mcp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestAgents runs each program of examples/agents with its libraries; only the address of the server is changed. A server of the test stands in for
// the services of the models: it calls math-add with "two" and 3, then with 2 and 3 after the answer that "two" is wrong, and then repeats the
// result.
func TestAgents(t *testing.T) {
	t.Parallel()
	serve := func(inTools string) (s setup, url string) {
		s = prepare(t, inTools)
		for _, name := range []string{"math", "csv", "image", "qr", "json", "time"} {
			if err := s.put(filepath.Join(setting(t, "TOOLS"), name+".wasm"), name+".wasm"); err != nil {
				t.Fatal(err)
			}
		}
		return s, s.start(t, nil)
	}
	open, url := serve("")
	_, guarded := serve("[auth]\ntokens = ['" + token + "']\n")
	hosted, agent := "Asked https://tools.example.com/mcp with the token.", "The sum is 5."
	refused := "The arguments do not fit the tool's schema:\n- a: Input should be a valid number (got \"two\")"
	programs := []struct{ name, want, url string }{
		{"python/openai_hosted.py", hosted, url},
		{"python/openai_local.py", agent, url},
		{"python/anthropic_hosted.py", hosted, url},
		{"python/anthropic_local.py", agent, url},
		{"python/gemini_local.py", agent, url},
		{"python/langchain_agent.py", agent, url},
		{"python/langchain_adapters.py", "5", url},
		{"python/mcp_stdio.py", "5", guarded},
		{"python/mcp_token.py", "5", guarded},
		{"python/fastmcp_token.py", "5\n" + refused, guarded},
		{"python/plain_http.py", "5", url},
		{"node/mcp_stdio.mjs", "5", guarded},
		{"node/mcp_token.mjs", "true " + refused, guarded},
	}
	if files, err := filepath.Glob("../../examples/agents/*/*.*"); err != nil || len(files) != len(programs) {
		t.Errorf("got %d programs, %v, want %d", len(files), err, len(programs))
	}
	for _, c := range programs {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join("../../examples/agents", c.name))
			if err != nil {
				t.Fatal(err)
			}
			program := string(text)
			models := &models{t: t, tools: map[string]bool{}}
			service := httptest.NewServer(models)
			defer service.Close()
			environment := []string{
				"TOOLSRV_TOKEN=" + token, "PYTHONWARNINGS=ignore",
				"PATH=" + filepath.Dir(setting(t, "TOOLSRV")) + string(os.PathListSeparator) + os.Getenv("PATH"),
				"OPENAI_BASE_URL=" + service.URL + "/v1", "OPENAI_API_KEY=x",
				"ANTHROPIC_BASE_URL=" + service.URL, "ANTHROPIC_API_KEY=x",
				"GOOGLE_GEMINI_BASE_URL=" + service.URL, "GEMINI_API_KEY=x",
			}
			python := setting(t, "PYTHON")
			if strings.Contains(program, "langchain_mcp_adapters") {
				python = setting(t, "PYTHON1")
			}
			// The folder has the tools in "tools", and the program is in PATH. Node looks for packages from the folder in which it is started.
			code := strings.ReplaceAll(program, "http://localhost:8000", c.url)
			command := []string{python, "-c", fmt.Sprintf("import os; os.chdir(%q)\n", filepath.Dir(open.tools)) + code}
			if strings.Contains(program, "@modelcontextprotocol") {
				command = []string{node(t), "--input-type=module", "-e", fmt.Sprintf("process.chdir(%q);\n", filepath.Dir(open.tools)) + code}
			}
			stdout, stderr, err := run(t, clientLimit, environment, command...)
			if err != nil || strings.TrimSpace(stdout) != c.want {
				t.Errorf("%s\nprints %q, want %q: %v\n%s", program, stdout, c.want, err, clip(stderr))
			}
			if models.asked && len(models.tools) > 0 {
				for _, name := range []string{"math-add", "csv-query", "image-resize", "json-query"} {
					if !models.tools[name] {
						t.Errorf("the model was offered no %s, but %v", name, models.tools)
					}
				}
			}
		})
	}
}

// TestDefinitions makes tool definitions of all example tools for each of the model APIs, with the types of their client
// libraries. definitions.py has the checks.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	examples, err := filepath.Glob(filepath.Join(setting(t, "TOOLS"), "*.wasm"))
	if err != nil || len(examples) < 10 {
		t.Fatalf("got the examples %q, %v", examples, err)
	}
	s := prepare(t, "")
	for _, file := range examples {
		if err := s.put(file, filepath.Base(file)); err != nil {
			t.Fatal(err)
		}
	}
	report, stderr, err := run(t, clientLimit, nil, append([]string{setting(t, "TOOLSRV"), "check", "--strict", "--models", "--json"}, examples...)...)
	if err != nil {
		t.Fatalf("toolsrv check: %v\n%s%s", err, report, stderr)
	}
	var checked struct {
		Files []struct {
			Tools  []string
			Models []struct{ Takers []string }
		}
	}
	if err := json.Unmarshal([]byte(report), &checked); err != nil {
		t.Fatal(err)
	}
	strict := []string{}
	for _, file := range checked.Files {
		for i, path := range file.Tools {
			takers := file.Models[i].Takers
			for _, api := range []string{"openai", "anthropic", "gemini"} {
				if !slices.Contains(takers, api) {
					t.Errorf("toolsrv check says that %s does not take the example %s", api, path)
				}
			}
			if slices.Contains(takers, "anthropic-strict") {
				strict = append(strict, strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", "-"))
			}
		}
	}
	if len(strict) == 0 {
		t.Error("toolsrv check says that Anthropic's strict mode takes no example")
	}
	names, err := json.Marshal(strict)
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr, err := run(t, clientLimit, nil, setting(t, "PYTHON"), here("definitions.py"), s.start(t, nil), string(names))
	if err != nil || !strings.HasSuffix(stdout, " tools\n") {
		t.Errorf("definitions.py: %q, %v\n%s", stdout, err, clip(stderr))
	}
}

// TestOpenWebUI configures a server as docs/mcp.md says, and sends it the requests that the page of Open WebUI makes in a browser.
func TestOpenWebUI(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```toml\n")
	configuration, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("docs/mcp.md shows no configuration")
	}
	s := prepare(t, "")
	if err := s.put(filepath.Join(setting(t, "TOOLS"), "math.wasm"), "math.wasm"); err != nil {
		t.Fatal(err)
	}
	configuration = strings.Replace(configuration, "0.0.0.0:8000", "127.0.0.1:0", 1) + "\n[tools]\ndirectory = '" + s.tools + "'\n"
	if err := os.WriteFile(s.config, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	url := s.start(t, nil)
	send := func(method, path, body string, headers ...string) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "tools.internal:8000"
		r.Header.Set("Origin", "https://chat.example.com")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		if got := answer.Header.Get("Access-Control-Allow-Origin"); got != "https://chat.example.com" {
			t.Errorf("%s %s: the answer allows %q", method, path, got)
		}
		return answer, string(text)
	}
	const bearer = "Bearer a-token-of-your-own"
	for _, c := range [][2]string{{"GET", "/openapi.json"}, {"POST", "/math/add"}, {"POST", "/mcp"}} {
		answer, _ := send(http.MethodOptions, c[1], "", "Access-Control-Request-Method", c[0], "Access-Control-Request-Headers", "authorization,content-type")
		if answer.StatusCode/100 != 2 || !strings.Contains(strings.ToLower(answer.Header.Get("Access-Control-Allow-Headers")), "authorization") {
			t.Errorf("the preflight for %s %s: %s, %v", c[0], c[1], answer.Status, answer.Header)
		}
	}
	answer, document := send(http.MethodGet, "/openapi.json", "", "Authorization", bearer)
	if answer.StatusCode != http.StatusOK || !strings.Contains(document, `"operationId":"math-add"`) {
		t.Errorf("/openapi.json: %s, %.300s", answer.Status, document)
	}
	if answer, body := send(http.MethodPost, "/math/add", `{"a":2,"b":3}`, "Authorization", bearer, "Content-Type", "application/json"); body != "5" {
		t.Errorf("/math/add: %s, %s", answer.Status, body)
	}
	if answer, _ := send(http.MethodPost, "/math/add", `{"a":2,"b":3}`, "Content-Type", "application/json"); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("/math/add without a token: %s", answer.Status)
	}
}

// models stands in for the services of OpenAI, Anthropic and Google.
type models struct {
	t     *testing.T
	mu    sync.Mutex
	asked bool
	tools map[string]bool // the tools that the model was offered
}

// asked has those parts of a request to a model's service that matter here.
type asked struct {
	Tools []struct {
		Type, Name, Description string
		Parameters              json.RawMessage // OpenAI
		InputSchema             json.RawMessage `json:"input_schema"` // Anthropic
		ServerURL               string          `json:"server_url"`   // OpenAI
		Authorization           string          // OpenAI
		FunctionDeclarations    []struct {      // Google
			Name, Description string
			Parameters        json.RawMessage `json:"parameters_json_schema"`
		}
	}
	MCPServers []struct { // Anthropic
		URL   string
		Token string `json:"authorization_token"`
	} `json:"mcp_servers"`
	Input    json.RawMessage // OpenAI: a text, or a list
	Messages []struct{ Content json.RawMessage }
	Contents []struct {
		Parts []struct {
			FunctionResponse *struct{ Response struct{ Result string } }
		}
	}
}

func (m *models) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var in asked
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	if err != nil {
		m.t.Errorf("the model's service got %.200q: %v", body, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = true
	offer := func(name, description string, schema json.RawMessage) {
		var top struct{ Type string }
		if json.Unmarshal(schema, &top) != nil || top.Type != "object" || description == "" || !regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`).MatchString(name) {
			m.t.Errorf("the model was offered the tool %q with the description %q and the schema %.200s", name, description, schema)
		}
		m.tools[name] = true
	}
	hosted := ""
	for _, tool := range in.Tools {
		switch {
		case tool.Type == "mcp" && tool.Authorization == token:
			hosted = tool.ServerURL
		case tool.Type == "mcp_toolset" && len(in.MCPServers) == 1 && in.MCPServers[0].Token == token:
			hosted = in.MCPServers[0].URL
		case tool.FunctionDeclarations != nil:
			for _, f := range tool.FunctionDeclarations {
				offer(f.Name, f.Description, f.Parameters)
			}
		case tool.Parameters != nil:
			offer(tool.Name, tool.Description, tool.Parameters)
		default:
			offer(tool.Name, tool.Description, tool.InputSchema)
		}
	}
	say, arguments := "", `{"a":"two","b":3}`
	switch result := in.result(m.t); {
	case hosted != "":
		say = "Asked " + hosted + " with the token."
	case strings.Contains(result, "a: Input should be a valid number"):
		arguments = `{"a":2,"b":3}`
	case result != "":
		say = "The sum is " + result + "."
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path == "/v1/responses":
		item := `{"type":"function_call","id":"f1","call_id":"c1","name":"math-add","arguments":` + quote(arguments) + `,"status":"completed"}`
		if say != "" {
			item = `{"type":"message","id":"m1","role":"assistant","status":"completed","content":[{"type":"output_text","text":` + quote(say) + `,"annotations":[]}]}`
		}
		fmt.Fprintf(w, `{"id":"r1","object":"response","created_at":1,"model":"gpt-5","status":"completed","output":[%s],"parallel_tool_calls":true,"tool_choice":"auto","tools":[]}`, item)
	case r.URL.Path == "/v1/messages":
		block, reason := `{"type":"tool_use","id":"t1","name":"math-add","input":`+arguments+`}`, "tool_use"
		if say != "" {
			block, reason = `{"type":"text","text":`+quote(say)+`}`, "end_turn"
		}
		fmt.Fprintf(w, `{"id":"m1","type":"message","role":"assistant","model":"claude-sonnet-5","content":[%s],"stop_reason":%q,"usage":{"input_tokens":1,"output_tokens":1}}`, block, reason)
	case strings.HasSuffix(r.URL.Path, ":generateContent"):
		part := `{"functionCall":{"name":"math-add","args":` + arguments + `}}`
		if say != "" {
			part = `{"text":` + quote(say) + `}`
		}
		fmt.Fprintf(w, `{"candidates":[{"content":{"role":"model","parts":[%s]},"finishReason":"STOP"}]}`, part)
	default:
		m.t.Errorf("the model's service got a request for %s", r.URL)
	}
}

// result returns the last result of a tool in a request to the model, or "" if no tool was called yet.
func (in *asked) result(t *testing.T) (last string) {
	for _, content := range in.Contents {
		for _, part := range content.Parts {
			if part.FunctionResponse != nil {
				last = part.FunctionResponse.Response.Result
			}
		}
	}
	var items []struct {
		Type   string
		Output string
	}
	if json.Unmarshal(in.Input, &items) == nil {
		for _, item := range items {
			if item.Type == "function_call_output" {
				last = item.Output
			}
		}
	}
	for _, message := range in.Messages {
		var blocks []struct {
			Type    string
			Content []struct{ Text string }
		}
		if json.Unmarshal(message.Content, &blocks) != nil {
			continue // a text
		}
		for _, block := range blocks {
			if block.Type == "tool_result" {
				if len(block.Content) == 0 {
					t.Errorf("an empty result: %s", message.Content)
					return "nothing"
				}
				last = block.Content[0].Text
			}
		}
	}
	return last
}

func quote(s string) string {
	text, _ := json.Marshal(s) // of a string
	return string(text)
}
