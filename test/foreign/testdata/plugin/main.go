package main

import (
	"strconv"
	"strings"

	"github.com/extism/go-pdk"
)

//go:wasmexport count_words
func countWords() int32 {
	pdk.OutputString(strconv.Itoa(len(strings.Fields(pdk.InputString()))))
	return 0
}

func main() {}
