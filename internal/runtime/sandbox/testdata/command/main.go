// Command is a plain WASI program for the tests, built by Go's own compiler.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
)

func main() {
	var v map[string]any
	if err := json.NewDecoder(os.Stdin).Decode(&v); err != nil {
		log.Fatal(err)
	}
	switch v["do"] {
	case "fail":
		log.SetFlags(0)
		log.Print("this is not the reason")
		log.Fatal("the reason")
	case "panic":
		panic("on purpose")
	}
	fmt.Fprintln(os.Stderr, "a log line")
	if err := json.NewEncoder(os.Stdout).Encode(v); err != nil {
		log.Fatal(err)
	}
}
