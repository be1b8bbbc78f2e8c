package main

import (
	"strconv"
	"strings"

	"github.com/extism/go-pdk"
)

//go:wasmexport list_tools
func listTools() int32 {
	pdk.OutputString(`{"tools": [{"name": "count_words", "description": "Counts the words of a text.", "inputSchema":
		{"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}}]}`)
	return 0
}

//go:wasmexport call_tool
func callTool() int32 {
	var call struct {
		Request struct{ Arguments struct{ Text string } }
	}
	if err := pdk.InputJSON(&call); err != nil {
		pdk.SetError(err)
		return 1
	}
	words := len(strings.Fields(call.Request.Arguments.Text))
	pdk.OutputString(`{"content": [{"type": "text", "text": "` + strconv.Itoa(words) + `"}]}`)
	return 0
}

func main() {}
