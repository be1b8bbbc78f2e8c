package testkit

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Main runs the tests of a package. It fails if goroutines outlive the tests and their stacks contain one of these words, such as the package's
// path. It does not return.
func Main(m *testing.M, words ...string) {
	code := m.Run()
	if left := leaked(words); code == 0 && left != "" {
		fmt.Fprintln(os.Stderr, "goroutines outlive the tests:\n"+left)
		code = 1
	}
	os.Exit(code)
}

// leaked returns the stacks of the goroutines once their number no longer falls.
func leaked(words []string) string {
	var left string
	for end := time.Now().Add(Patience); time.Now().Before(end); runtime.Gosched() {
		if left = stacksWith(words); left == "" {
			break
		}
	}
	return left
}

// stacksWith returns the stacks that contain one of these words, without the stack of the tests' main function.
func stacksWith(words []string) string {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	var found strings.Builder
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		for _, word := range words {
			if strings.Contains(stack, word) && !strings.Contains(stack, "TestMain") {
				found.WriteString(stack + "\n\n")
				break
			}
		}
	}
	return found.String()
}
