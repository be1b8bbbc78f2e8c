package main

import (
	"strings"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
)

var module = toolsrv.Export(toolsrv.Module{Namespace: "text", Version: "1.0.0", Tools: []toolsrv.Tool{
	toolsrv.Func("count_words", "Counts the words of a text.", countWords),
}})

type input struct {
	Text string `json:"text"`
}

func countWords(_ *toolsrv.Call, in input) (int, error) {
	return len(strings.Fields(in.Text)), nil
}

func main() {}
