package admin

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/rates"
	"github.com/toolsrv/toolsrv/internal/runtime/account"
)

// StatusArguments are the arguments of the operation status.
type StatusArguments struct {
	All bool `json:"all,omitempty" description:"Also list the files without problems."`
}

// A Status is the state of a server.
type Status struct {
	Server  Process   `json:"server" description:"The process that answers."`
	Ready   bool      `json:"ready" description:"Whether the server takes calls."`
	Because string    `json:"because,omitempty" description:"Why the server does not take calls."`
	State   string    `json:"state" description:"ok, or why tools and operators can't keep anything."`
	Tools   Counts    `json:"tools" description:"How many tools there are, and why some can't be called."`
	Sources []Source  `json:"sources" description:"Where files come from, in the order of their precedence."`
	Files   []File    `json:"files" description:"The files with problems, or all files."`
	Puts    Puts      `json:"puts" description:"Where files can be put and removed."`
	Calls   Calls     `json:"calls" description:"The calls of tools."`
	Limits  Limits    `json:"limits" description:"How much of each limit is used."`
	Code    Compiling `json:"compiling" description:"What is being compiled."`
	Rates   Rates     `json:"rates" description:"How many calls callers make."`
}

// Rates are the rates of callers' calls.
type Rates struct {
	Default    string `json:"default,omitempty" description:"The rate for each caller without one of its own; if missing, any number of calls."`
	Anonymous  string `json:"anonymous,omitempty" description:"The rate for each address while callers need no credentials; if missing, any number of calls."`
	Principals int    `json:"principals" description:"How many named callers have used part of their rate, or have running calls that count towards a limit."`
	Addresses  int    `json:"addresses" description:"How many addresses of callers without credentials have used part of their rate, or have running calls that count towards a limit."`
	Refused    int64  `json:"refused" description:"How many calls were refused since the server began, because their caller made too many."`
}

// A Process is a running server.
type Process struct {
	Version   string    `json:"version" description:"The program's version."`
	Revision  string    `json:"revision" description:"The revision that the program was built from."`
	PID       int       `json:"pid" description:"The number of the process."`
	Since     time.Time `json:"since" description:"When the server began."`
	Addresses []string  `json:"addresses" description:"Where the server listens."`
}

// Counts are numbers of tools.
type Counts struct {
	Generation uint64    `json:"generation" description:"The number of the list of tools, which grows with each change."`
	Since      time.Time `json:"since" description:"When that list of tools was made."`
	All        int       `json:"all" description:"How many tools there are."`
	Disabled   int       `json:"disabled" description:"How many tools are switched off."`
	NotGranted int       `json:"not_granted" description:"How many other tools lack a grant."`
	Refused    int       `json:"refused" description:"How many files or folders can't be served."`
}

// Puts say where files can be put and removed.
type Puts struct {
	Enabled     bool     `json:"enabled" description:"Whether files can be put and removed: [admin] upload."`
	Directories []string `json:"directories" description:"The tools directories, as the configuration calls them."`
}

// A Source is where files come from.
type Source struct {
	Name     string    `json:"name,omitempty" description:"The source's name in the configuration."`
	Place    string    `json:"place" description:"A directory, or a reference to a registry."`
	Listed   time.Time `json:"listed,omitzero" description:"When the source's files were last listed; missing if never."`
	Files    int       `json:"files" description:"How many files the source has."`
	Served   int       `json:"served" description:"How many of the source's files are served, including older versions."`
	Refused  int       `json:"refused" description:"How many files have a newest version that is not served."`
	Problems int       `json:"problems" description:"How many of the source's folders can't be read, or 1 if the source can't be asked."`
	Reason   string    `json:"reason,omitempty" description:"Why the first of these folders, or the source, can't be read."`
}

// sourcesOf returns the sources of a catalog.
func sourcesOf(of catalog.State) []Source {
	told := []Source{}
	for _, s := range of.Sources {
		one := Source{Name: s.Name, Place: s.Place, Listed: s.Listed, Served: s.Serving, Refused: s.Files[catalog.StageRefused], Problems: s.Problems}
		for _, n := range s.Files {
			one.Files += n
		}
		if s.Wrong != nil {
			one.Reason = s.Wrong.Error()
		}
		told = append(told, one)
	}
	return told
}

// A File is a file that has tools, or should have some.
type File struct {
	File      string    `json:"file" description:"Where the file lies."`
	Directory string    `json:"directory,omitempty" description:"The tools directory of the file, as the configuration calls it."`
	Name      string    `json:"name,omitempty" description:"The file's name in that directory, as put and remove take it."`
	State     string    `json:"state" enum:"settling,reading,compiling,describing,served,refused" description:"How far the file's newest version has come."`
	Since     time.Time `json:"since,omitzero" description:"When the file got into this state."`
	Reason    string    `json:"reason,omitempty" description:"Why the file's newest version is not served."`
	Digest    string    `json:"digest,omitempty" description:"The SHA-256 of the content that is served, which may be an older version."`
	Version   string    `json:"version,omitempty" description:"The version of the served content, as its author wrote it."`
	Tools     []string  `json:"tools,omitempty" description:"The paths of the file's tools that are served."`
}

// Calls are numbers of calls.
type Calls struct {
	Running int    `json:"running" description:"How many calls are running, or waiting for a compilation."`
	Waiting int    `json:"waiting" description:"How many calls wait for their turn."`
	Minute  TopSum `json:"minute" description:"The calls of the last minute."`
	Hour    TopSum `json:"hour" description:"The calls of the last hour."`
	Busy    []Busy `json:"busy" description:"The tools with running or waiting calls."`
}

// A Busy is a tool with running or waiting calls.
type Busy struct {
	Path    string `json:"path" description:"The tool's path."`
	Running int    `json:"running" description:"How many calls run."`
	Waiting int    `json:"waiting" description:"How many calls wait for their turn."`
	Places  int    `json:"places" description:"How many calls may run at once."`
}

// Limits are how much of each limit is used.
type Limits struct {
	Memory      Use  `json:"memory" description:"Memory of all tools, in bytes."`
	Code        Use  `json:"code" description:"Compiled code in memory, in bytes."`
	Mappings    Use  `json:"mappings" description:"Mappings of the address space."`
	Manifests   Use  `json:"manifests" description:"Memory for manifests, in bytes: schemas and documents."`
	Sources     Use  `json:"sources" description:"Memory for original modules, and for the files beside scripts, in bytes."`
	Bodies      Use  `json:"bodies" description:"Large arguments and results of calls, in bytes."`
	Connections Use  `json:"connections" description:"Connections of clients."`
	Streams     Use  `json:"streams" description:"Streams of events and of MCP that clients have open."`
	Sessions    *Use `json:"sessions,omitempty" description:"Sessions of clients of older versions of MCP; missing if the server doesn't speak those."`
	State       *Use `json:"state,omitempty" description:"What tools and operators keep, in bytes on disk; missing if nothing is kept there."`
}

// A Use is how much of a limit is used.
type Use struct {
	Held    int64    `json:"held" description:"How much of the limit is used."`
	Limit   int64    `json:"limit" description:"The limit; 0 means none."`
	Waiting int      `json:"waiting" description:"How many requests for more are waiting."`
	By      []Holder `json:"by,omitempty" description:"Who holds the most, if that is known: at most five, the largest first."`
}

// A Compiling describes what is being compiled.
type Compiling struct {
	Done    bool `json:"done" description:"Whether everything that is served is compiled."`
	Running int  `json:"running" description:"How many modules are being compiled, or read from disk."`
	Queued  int  `json:"queued" description:"How many modules wait to be compiled or read."`
}

func status() Operation {
	return Looks("status", "Show the state of the server", func(_ context.Context, r *Request, in StatusArguments) (Status, error) {
		of := r.Service
		engine, table := of.Engine.State(), r.generation()
		bodies, mostBodies := of.Invoker.Memory()
		s := Status{
			Server: Process{Version: r.Build.Version, Revision: r.Build.Revision, PID: os.Getpid(), Since: of.Began, Addresses: r.Server.Addresses()},
			Ready:  true,
			State:  "ok",
			Tools:  Counts{Generation: table.Number(), Since: table.Published(), All: len(table.Routes()), Refused: len(table.Refused())},
			Files:  filesOf(of, in.All), Sources: sourcesOf(of.Catalog.State()),
			Limits: Limits{
				Memory: useOf(engine.Memory), Code: useOf(engine.CodeMemory), Mappings: useOf(engine.Mappings), Manifests: useOf(engine.Manifests), Sources: useOf(engine.Sources),
				Bodies: Use{Held: bodies, Limit: mostBodies, By: CallersOf(of.Invoker.Holders())}, Connections: r.Server.Connections(), Streams: r.Server.Streams(), Sessions: r.Server.Sessions(),
			},
			Code: Compiling{Done: of.Catalog.Compiled(), Running: engine.Compiling.Running, Queued: engine.Compiling.Queued},
		}
		s.Limits.holdersOf(core.Holders(table))
		if kept, ok := of.State.Figures(); ok && kept.Bytes > 0 {
			s.Limits.State = &Use{Held: kept.Bytes}
		}
		s.Puts = Puts{Enabled: r.inForce().Admin.Upload, Directories: []string{}}
		for _, d := range of.Directories() {
			s.Puts.Directories = append(s.Puts.Directories, d.Path)
		}
		if err := r.Server.Ready(); err != nil {
			s.Ready, s.Because = false, err.Error()
		}
		if cut := of.State.CutOff(); cut != nil {
			s.State = fmt.Sprintf("cut off since %s, so nothing can be changed: %v", cut.Since.UTC().Format(time.RFC3339), cut.Why)
		}
		if err := of.State.Broken(); err != nil {
			s.State = err.Error()
		}
		inForce := r.inForce().CallRates()
		s.Rates = Rates{Default: rates.Describe(inForce.Default), Anonymous: rates.Describe(inForce.Anonymous), Refused: of.Rates.Refused()}
		s.Rates.Principals, s.Rates.Addresses = of.Rates.Known()
		s.Tools.Disabled, s.Tools.NotGranted = core.Switched(table)
		lately, _ := of.Metrics.Tools(0)
		for _, t := range lately {
			s.Calls.Minute.add(callsOf(t.Minute).TopSum)
			s.Calls.Hour.add(hourOf(&t))
		}
		s.Calls.Busy = []Busy{}
		for _, route := range table.Routes() {
			if b := busy(&route); b.Running > 0 || b.Waiting > 0 {
				s.Calls.Running += b.Running
				s.Calls.Waiting += b.Waiting
				s.Calls.Busy = append(s.Calls.Busy, b)
			}
		}
		return s, nil
	})
}

// filesOf returns the files whose newest version is not served, or all files.
func filesOf(of *core.Service, all bool) []File {
	told, directories := []File{}, of.Directories()
	for _, f := range of.Catalog.Files() {
		if f.Stage == catalog.StageServed && !all {
			continue
		}
		one := File{File: f.Source, State: string(f.Stage), Since: f.Since, Digest: f.Digest, Version: f.Version, Tools: f.Paths}
		if f.Err != nil {
			one.Reason = f.Err.Error()
		}
		if at := slices.IndexFunc(directories, func(d core.Directory) bool { return d.ID == f.SourceID }); at >= 0 {
			one.Directory, one.Name = directories[at].Path, f.Name
		}
		told = append(told, one)
	}
	return told
}

func useOf(u account.Use) Use { return Use{Held: u.Held, Limit: u.Limit, Waiting: u.Waiting} }
