//go:build wasip1 && !reactor

package main

import "os"

func main() { os.Stdout.Write(report()) }
