//go:build wasip1

// A guest for the tests, which looks at the files that it was granted: a plain program, and with the tag reactor a module with
// toolsrv_call.
package main

import (
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// number returns the error number of WASI. It does not use errors.As, which TinyGo can't compile together with encoding/json.
func number(err error) int {
	if e, ok := err.(*fs.PathError); ok {
		err = e.Err
	}
	switch e := err.(type) {
	case nil:
		return 0
	case syscall.Errno:
		return int(e)
	}
	if err == fs.ErrNotExist {
		return 44
	}
	return -1
}

func names(dir string) []string {
	entries, err := os.ReadDir(dir)
	list := []string{}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	if err != nil {
		return []string{err.Error()}
	}
	slices.Sort(list)
	return list
}

func report() []byte {
	content, err := os.ReadFile("/geo/cities.csv")
	result := map[string]any{"read": string(content), "errno": number(err), "root": names("/"), "list": names("/geo"), "many": len(names("/geo/many"))}
	relative, _ := os.ReadFile("geo/maps/world.json")
	result["relative"] = string(relative)
	linked, _ := os.ReadFile("/geo/current/world.json")
	result["linked"] = string(linked)
	large, _ := os.ReadFile("/geo/large")
	sum := 0
	for _, b := range large {
		sum += int(b)
	}
	result["sum"] = sum
	if info, err := os.Stat("/geo/cities.csv"); err == nil {
		result["size"] = info.Size()
	}
	if f, err := os.Open("/geo/cities.csv"); err == nil {
		part := make([]byte, 5)
		f.Seek(6, io.SeekStart)
		io.ReadFull(f, part)
		result["middle"] = string(part)
		f.Close()
	}
	_, none := os.ReadFile("/geo/none")
	_, out := os.ReadFile("/geo/out")
	_, passwd := os.ReadFile("/etc/passwd")
	_, fifo := os.ReadFile("/geo/fifo")
	result["none"], result["out"], result["passwd"], result["fifo"] = number(none), number(out), number(passwd), number(fifo)
	result["write"], result["create"] = number(os.WriteFile("/geo/cities.csv", nil, 0o600)), number(os.WriteFile("/geo/new", nil, 0o600))
	result["mkdir"], result["remove"] = number(os.Mkdir("/geo/new", 0o700)), number(os.Remove("/geo/cities.csv"))
	text, err := json.Marshal(result)
	if err != nil {
		panic(err)
	}
	return text
}
