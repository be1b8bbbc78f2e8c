// Command attack starts the real server with real modules, attacks it in the ways that have once brought it down, and reports for each attack whether
// the server kept its promise: at worst it answers 503 with Retry-After, and it never answers 500, hangs or ends. Each attack has further bars of its
// own.
//
//	attack [-server BINARY] [-only NAME,...] [-list]
//
// `make attack` builds what is needed; `make attack ATTACK=mappings` makes one attack. One line for each attack goes to stdout; the exit code is 1 if
// a bar was missed. The modules are written by hand, so that no compiler is needed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/measure"
)

func main() {
	os.Exit(measure.Main("attack", run, map[string]measure.Child{neighbourCommand: beNeighbour}))
}

// An attack is one way to harm a server.
type attack struct {
	name string
	what string // what is done, and the bar
	run  func(ctx context.Context, a *arena) error
}

func attacks() []attack {
	return []attack{
		{"mappings", "3,000 small tools, 8 overlapping calls of each: the process stays below vm.max_map_count", attackMappings},
		{"mappings-busy", "3,000 small tools called in turn by 64 clients at GOMAXPROCS=16: the same", attackMappingsBusy},
		{"memory", "8 calls of one tool at a time that take 50 MiB each, with 256 MiB for the process: it is not killed, and a fifth is served", attackMemory},
		{"resident", "40 tools, 3 calls of each at a time that take 50 MiB, with [server] memory at 1 GiB: no more than 1.4 GiB are resident", attackResident},
		{"scripts", "100 scripts in [server] memory of 256 MiB, called in turn: no call of 16 or 64 connections is refused, and they get at least half as many answers as one connection", attackScripts},
		{"scripts-512", "the same with 512 MiB, and at least a twentieth of the answers", attackScripts512},
		{"scripts-1024", "the same with 1 GiB", attackScripts1024},
		{"scripts-many", "150 scripts are started in [server] memory of 256 MiB: that takes no more than twice as long as in 2 GiB", attackScriptsMany},
		{"small", "10 scripts in Python with 256 MiB for the server and its child processes: all are listed, and no call of 8 clients is refused", attackSmall},
		{"smaller", "the same in JavaScript with 128 MiB", attackSmaller},
		{"descriptors", "1,500 tools called for the first time where 1,024 files may be open: all are served", attackDescriptors},
		{"elements", "8 calls of modules with 4.19 million passive elements and a limit of 0.5 s: refused at load, or over in 1.5 s and below 512 MiB", attackElements},
		{"shapes", "modules that take a compiler gigabytes: refused at load, or below 768 MiB and 15 s of processor time together", attackShapes},
		{"dear", "five expensive modules arrive beside a busy cheap one: its p99 stays below 300 ms, and a new cheap file is served in 3 s", attackDear},
		{"schemas", "200 files with hostile schemas of 757 KB each, with the limits of a server with 1 GiB: it stays below 768 MiB, gives a reason for each file that it refuses, and serves and lists the others", attackSchemas},
		{"sources", "incompressible modules of 63 MiB (14 with 768 MiB for the process, one with 256 MiB, one with 128 MiB) and smaller ones: nothing is killed, a module that doesn't fit is refused with the reason, and a neighbour is served", attackSources},
		{"manifests", "manifests of 980 KB with 490,000 values, one with 128 MiB for the process and 6 with 256: the same", attackManifests},
		{"bundles", "8 scripts in Python of 15 MiB, with 256 MiB for the process: the same", attackBundles},
		{"compile", "modules of 30 KB to 8 MB that take a compiler half a minute and gigabytes, in 1 GiB: each is refused or compiled, nothing is killed, a neighbour's p99 stays below 300 ms, and a new cheap file is served in 3 s", attackCompile},
		{"disk", "a cache disk that is full: all 60 tools are served, then nothing is compiled and fewer than 100 lines are logged in 5 s", attackDisk},
		{"launder", "10 calls of a tool that keeps calling two others: one may send 2 requests in a call and has itself called to send more, one prints a secret: 20 requests arrive, and 10 log lines mention the secret", attackLaunder},
		{"log", "calls that log 100 lines, each a mebibyte of zeros: a call's lines take 512 KiB of log at most", attackLog},
		{"nonsense", "20 connections send 10 kinds of refused requests, with and without a token: one log line a second for each kind", attackNonsense},
		{"overload", "200 connections call a tool that has room for 72: one log line a second, and a neighbour's p50 below 3 ms", attackOverload},
		{"idle", "400 connections without a token that send nothing, where 256 files may be open: probes and calls with a token take 2 s at most", attackIdle},
		{"idle-many", "12,000 such connections without that limit: the same", attackIdleMany},
		{"heads", "9,500 heads of 31 KiB that never end, without a token, with 512 MiB for the process: the same, within four fifths of the memory", attackHeads},
		{"head-lines", "the same with heads of thousands of short lines", attackHeadLines},
		{"bodies", "9,500 bodies of 65,000 bytes that never end, sent to a server without tokens that has 512 MiB: probes, and calls with their retries, take 2 s at most, within four fifths of the memory", attackBodies},
		{"values", "12 clients send bodies of 1 MiB with half a million numbers each, where 8 calls at a time want 50 MiB, with 160 MiB for the process: it is not killed, and both are served", attackValues},
		{"moves", "8 calls at a time of a tool that moves 3,072 vectors for an instruction, with a limit of 1 s: they end within 1.5 s, or on a busy machine within twice the time of a loop that moves nothing, and a neighbour's p50 is below 50 ms", attackMoves},
		{"spin", "3,200 calls at a time, of the 400 tools of one file, that compute until their limit: a neighbour's p99 is below 50 ms, or on a busy machine below eight times its p99 beside 8 of these calls", attackSpin},
		{"start", "calls while 3,000 tools are read without a cache: none is answered 404; then 48 clients call each of them: all are served", attackStart},
	}
}

// errSkipped is returned by an attack that could not be made as described.
var errSkipped = errors.New("skipped")

func run(ctx context.Context, arguments []string, out, _ io.Writer) error {
	flags := flag.NewFlagSet("attack", flag.ContinueOnError)
	server := flags.String("server", "bin/toolsrv", "the server's binary")
	only := flags.String("only", "", "only these attacks, separated by commas")
	list := flags.Bool("list", false, "list the attacks")
	cgroup := flags.String("cgroup", "", "a directory of cgroup v2 in which groups with memory.max can be made; if empty, one is looked for")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	wanted := strings.FieldsFunc(*only, func(r rune) bool { return r == ',' })
	all := attacks()
	for _, name := range wanted {
		if !slices.ContainsFunc(all, func(a attack) bool { return a.name == name }) {
			return fmt.Errorf("there is no attack %q: see attack -list", name)
		}
	}
	var missed []string
	for _, k := range all {
		if *list {
			fmt.Fprintf(out, "%-14s %s\n", k.name, k.what)
			continue
		}
		if len(wanted) > 0 && !slices.Contains(wanted, k.name) {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if kept, err := once(ctx, k, *server, *cgroup, out); err != nil {
			return err
		} else if !kept {
			missed = append(missed, k.name)
		}
	}
	if len(missed) > 0 {
		return fmt.Errorf("%d missed their bar: %s", len(missed), strings.Join(missed, ", "))
	}
	return nil
}

// once makes an attack and prints its line.
func once(ctx context.Context, k attack, server, cgroup string, out io.Writer) (kept bool, err error) {
	directory, err := os.MkdirTemp("", "toolsrv-attack-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(directory)
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	a := &arena{directory: directory, binary: server, cgroup: cgroup}
	begin := time.Now()
	err = k.run(ctx, a)
	err = errors.Join(err, a.close())
	verdict := "ok"
	switch {
	case errors.Is(err, errSkipped):
		verdict = "SKIP"
	case err != nil:
		verdict = "MISS"
	}
	line := fmt.Sprintf("%-4s %-14s %s; %.0f s", verdict, k.name, strings.Join(a.facts, ", "), time.Since(begin).Seconds())
	if err != nil {
		line += "\n       " + strings.ReplaceAll(err.Error(), "\n", "\n       ")
	}
	if verdict == "MISS" {
		line += "\n       the bar: " + k.what
	}
	fmt.Fprintln(out, line)
	return verdict != "MISS", nil
}
