//go:build wasip1

// Reactor is a guest for the tests, built by Go's own compiler. What it does depends on the tool's number.
package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"time"
	"unsafe"
)

//go:wasmimport toolsrv_v1 input_size
func inputSize() uint32

//go:wasmimport toolsrv_v1 input_read
func inputRead(p unsafe.Pointer)

//go:wasmimport toolsrv_v1 output_write
func outputWrite(p unsafe.Pointer, n uint32)

func input() []byte {
	b := make([]byte, inputSize()+1)
	inputRead(unsafe.Pointer(&b[0]))
	return b[:len(b)-1]
}

func output(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	outputWrite(unsafe.Pointer(&b[0]), uint32(len(b)))
}

var keep [][]byte

func recurse(n int) int { return recurse(n+1) + recurse(n+2) + 1 }

//go:wasmexport toolsrv_call
func call(tool int32) int32 {
	switch tool {
	case 0: // arguments and result
		var v map[string]any
		if err := json.Unmarshal(input(), &v); err != nil {
			panic(err)
		}
		v["tool"] = "reactor"
		output(v)
	case 1: // what is granted, and what is not
		random := make([]byte, 32)
		rand.Read(random)
		begun := time.Now()
		time.Sleep(20 * time.Millisecond)
		_, file := os.ReadFile("/etc/passwd")
		_, directory := os.ReadDir(".")
		_, dial := net.Dial("tcp", "127.0.0.1:80")
		output(map[string]any{
			"args": len(os.Args), "env": len(os.Environ()), "random": random,
			"slept": time.Since(begun) >= 20*time.Millisecond, "year": time.Now().Year(),
			"file": file != nil, "directory": directory != nil, "write": os.WriteFile("x", nil, 0o600) != nil, "dial": dial != nil,
		})
	case 2: // goroutines, channels and the garbage collector
		var wait sync.WaitGroup
		sums := make(chan int, 100)
		for i := range 100 {
			wait.Go(func() {
				garbage := make([]byte, 100_000)
				sums <- i + len(garbage) - 100_000
			})
		}
		wait.Wait()
		runtime.GC()
		close(sums)
		total := 0
		for n := range sums {
			total += n
		}
		output(total)
	case 3:
		fmt.Println("to stdout")
		fmt.Fprintln(os.Stderr, "to stderr")
		fmt.Print("no end")
		output(nil)
	case 4:
		panic("on purpose")
	case 5:
		output(recurse(0))
	case 6:
		for {
			keep = append(keep, make([]byte, 1<<20))
		}
	case 7:
		for {
		}
	case 8:
		time.Sleep(time.Hour)
	case 9:
		select {}
	case 10:
		os.Exit(3)
	}
	return 0
}

func main() {}
