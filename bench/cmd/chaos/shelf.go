package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/assemble"
	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/client"
)

// withShelf are configuration tables of a server that also serves the files in a bucket. The server makes no change that can't be stored in the
// audit.
const withShelf = `
[[source]]
name = "shelf"
bucket = "shelf"

[admin]
upload = true

[audit]
strict = true
`

const (
	shelved = 4
	// removable is the file that is sometimes removed. All other files must stay in service once they are served.
	removable = shelved - 1
	// putEvery is the time between two changes of a file.
	putEvery = time.Second
	// fileBytes is the size of a file, which takes several NATS messages.
	fileBytes = 200_000
	// servedWithin is how long it may take until all servers serve a new version.
	servedWithin = 30 * time.Second
)

// A shelf has operators put, roll back and remove files at all servers, while callers call their tools. Afterwards, all servers must serve what the
// operators were told.
type shelf struct {
	*world
	mu      sync.Mutex
	files   [shelved]shelvedFile
	number  int // the number of the last version
	changed int
	refused int
	called  int
}

// A shelvedFile is the state of one file.
type shelvedFile struct {
	maybe  []int          // one of these versions must be served; 0 means no version
	put    map[int]string // the digests of confirmed versions
	served bool           // all servers have served the file
}

func (*shelf) name() string { return "files changed, refused, called" }

// version returns the name of the file, a version of it, and its digest.
func version(i, n int) (name string, module []byte, digest string, err error) {
	const tool = `{"name":%q,"description":"Gives back its input.","parameters":{"type":"object"}}`
	manifest := fmt.Sprintf(`{"abi":1,"namespace":"shelf","tools":[`+tool+","+tool+`]}`, toolOf(i), toolOfVersion(i, n))
	module, err = assemble.Tool{Number: int32(n), Passive: fileBytes, Manifest: []byte(manifest)}.Module()
	sum := sha256.Sum256(module)
	return fmt.Sprintf("f%d.wasm", i), module, hex.EncodeToString(sum[:]), err
}

func toolOf(i int) string           { return fmt.Sprintf("f%d", i) }
func toolOfVersion(i, n int) string { return fmt.Sprintf("f%d_v%d", i, n) }

// load implements trial.
func (s *shelf) load(ctx context.Context, _ fault, l *ledger) {
	var all sync.WaitGroup
	for i := range s.files {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if over := s.replicas[rand.IntN(replicas)].admin(); over != nil {
					s.change(context.WithoutCancel(ctx), over, i, n)
				}
				wait(ctx, putEvery)
			}
		})
	}
	all.Go(func() { s.call(ctx, l) })
	all.Wait()
}

// change changes a file at a server.
func (s *shelf) change(ctx context.Context, over *client.Client, i, n int) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	s.mu.Lock()
	f := &s.files[i]
	to, digest := 0, ""
	switch {
	case i == removable && n%4 == 3:
	case n%4 == 1 && len(f.put) > 0: // to a confirmed version
		for v, d := range f.put {
			if v > to && !(len(f.maybe) == 1 && v == f.maybe[0]) {
				to, digest = v, d
			}
		}
	}
	rolls := to != 0
	removes := i == removable && n%4 == 3
	if !rolls && !removes {
		s.number++
		to = s.number
	}
	if len(f.maybe) == 0 { // it was never there
		f.maybe = []int{0}
	}
	f.maybe = append(f.maybe, to)
	s.mu.Unlock()

	name, module, put, err := version(i, to)
	operation := "put"
	var answer *client.Answer
	switch {
	case err != nil:
	case removes:
		operation = "remove"
		answer, err = over.Do(ctx, operation, admin.FileArguments{Name: name, Directory: "shelf"}, "")
	case rolls:
		operation = "rollback"
		answer, err = over.Do(ctx, operation, admin.RollbackArguments{Path: name, Version: digest}, "")
	default:
		digest = put
		answer, err = over.Put(ctx, operation, admin.FileArguments{Name: name, Directory: "shelf"}, "", bytes.NewReader(module), int64(len(module)))
	}
	var made struct{ Changed bool }
	if err == nil {
		err = answer.Into(&made)
	}
	if err == nil && made.Changed {
		s.book.confirm(operation, name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil { // the change may have been made, or will be
		s.refused++
		s.operator.because(err)
		return
	}
	s.changed++
	f.maybe = []int{to}
	if f.put == nil {
		f.put = map[int]string{}
	}
	if to != 0 {
		f.put[to] = digest
	}
	for v := range f.put { // five are kept
		if v < to-3*shelved {
			delete(f.put, v)
		}
	}
}

// call calls tools of files that are always served.
func (s *shelf) call(ctx context.Context, l *ledger) {
	asks := &http.Client{Transport: &http.Transport{}}
	defer asks.CloseIdleConnections()
	var all sync.WaitGroup
	defer all.Wait()
	for n := 0; ctx.Err() == nil; n++ {
		i := n % removable
		s.mu.Lock()
		served := s.files[i].served
		s.mu.Unlock()
		if served {
			all.Go(func() {
				a := callPath(context.WithoutCancel(ctx), asks, s.balancer.front.URL+"/shelf/"+toolOf(i), s.token, struct{}{})
				l.note("plain", a, func(a answer) bool { return a.body == "{}" })
				s.mu.Lock()
				s.called++
				s.mu.Unlock()
			})
		}
		wait(ctx, 50*time.Millisecond)
	}
}

// verify implements trial.
func (s *shelf) verify(ctx context.Context) (sum string, wrong []string) {
	asks := &http.Client{Transport: &http.Transport{}}
	defer asks.CloseIdleConnections()
	began := time.Now()
	for i := range s.files {
		f := &s.files[i]
		if len(f.maybe) == 0 {
			continue
		}
		for {
			have, problem := s.same(ctx, asks, i)
			if problem == "" {
				f.maybe, f.served = []int{have}, have != 0
				break
			}
			if time.Since(began) > servedWithin || ctx.Err() != nil {
				wrong = append(wrong, fmt.Sprintf("f%d: after %v: %s", i, servedWithin, problem), s.why(ctx))
				break
			}
			wait(ctx, 20*time.Millisecond)
		}
	}
	sum = fmt.Sprintf("%d, %d, %d; all the same after %v", s.changed, s.refused, s.called, time.Since(began).Round(time.Millisecond))
	s.changed, s.refused, s.called = 0, 0, 0
	return sum, wrong
}

// why returns what servers say about files that they do not serve.
func (s *shelf) why(ctx context.Context) (all string) {
	for _, r := range s.replicas {
		answer, err := r.admin().Do(ctx, "refused", struct{}{}, "")
		if err != nil {
			answer = &client.Answer{}
		}
		all += fmt.Sprintf("%s refuses %.500s %v; ", r.name, answer.Result, errors.Join(err))
	}
	return all
}

// same returns the version of a file that all servers serve, or an error.
func (s *shelf) same(ctx context.Context, asks *http.Client, i int) (have int, problem string) {
	maybe := s.files[i].maybe
	for at, r := range s.replicas {
		status := func(tool string) int {
			return callPath(ctx, asks, *r.url.Load()+"/shelf/"+tool, s.token, struct{}{}).status
		}
		var found []int
		for _, v := range slices.Compact(slices.Sorted(slices.Values(maybe))) {
			if v != 0 && status(toolOfVersion(i, v)) == http.StatusOK {
				found = append(found, v)
			}
		}
		switch got := status(toolOf(i)); {
		case got == http.StatusNotFound && len(found) == 0 && slices.Contains(maybe, 0):
			found = []int{0}
		case got != http.StatusOK || len(found) != 1:
			return 0, fmt.Sprintf("%s answers %d, and serves the versions %v of %v", r.name, got, found, maybe)
		}
		if at > 0 && found[0] != have {
			return 0, fmt.Sprintf("%s serves the version %d, and others %d", r.name, found[0], have)
		}
		have = found[0]
	}
	return have, ""
}

// wait waits for a time, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
