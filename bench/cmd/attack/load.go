package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/measure"
	"github.com/toolsrv/toolsrv/bench/internal/service"
)

// hang is how long an answer may take at most.
const hang = 30 * time.Second

// A tally counts how requests were answered.
type tally struct {
	served  int // 200 with the expected output
	refused int // 503 with Retry-After
	allowed int // errors that the load allows
	wrong   int
	first   []string        // of wrong answers
	times   []time.Duration // of served requests
	worst   time.Duration   // of all
}

// A load is many requests.
type load struct {
	clients int
	path    func(i int) (path string, more bool) // the path of request number i
	body    string                               // the body; "" means one with the request's number
	output  func(i int) string                   // the expected output; if nil, what was sent
	allow   []string                             // allowed error codes besides overloaded and not_ready
}

// times makes the requests go to n paths in turn.
func times(n int, path func(i int) string) func(int) (string, bool) {
	return func(i int) (string, bool) { return path(i), i < n }
}

// until makes the requests go to one path until done is closed.
func until(done <-chan struct{}, path string) func(int) (string, bool) {
	return func(int) (string, bool) {
		select {
		case <-done:
			return "", false
		default:
			return path, true
		}
	}
}

// run makes the requests. It ends early if the server has ended.
func (l load) run(ctx context.Context, s *service.Service) tally {
	client := &http.Client{Timeout: hang, Transport: &http.Transport{MaxIdleConnsPerHost: l.clients}}
	defer client.CloseIdleConnections()
	var (
		mu   sync.Mutex
		next int
		sum  tally
		all  sync.WaitGroup
	)
	for range l.clients {
		all.Go(func() {
			for ctx.Err() == nil && s.Died() == nil {
				mu.Lock()
				path, more := l.path(next)
				number := next
				next++
				mu.Unlock()
				if !more {
					return
				}
				begin := time.Now()
				body := l.body
				if body == "" {
					body = fmt.Sprintf(`{"number": %d}`, number)
				}
				want := body
				if l.output != nil {
					want = l.output(number)
				}
				code, err := call(client, s.URL+path, body, want)
				took := time.Since(begin)
				mu.Lock()
				sum.add(code, err, took, l.allow)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return sum
}

// call makes a request and compares the answer with want. If the answer is a well-formed error, it returns the error's code.
func call(client *http.Client, url, body, want string) (code string, err error) {
	answer, err := client.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", err
	}
	if answer.StatusCode == http.StatusOK {
		if string(text) != want {
			return "", fmt.Errorf("the output is %.100q, want %q", text, want)
		}
		return "", nil
	}
	var failure struct{ Code string }
	if err := json.Unmarshal(text, &failure); err != nil || failure.Code == "" {
		return "", fmt.Errorf("%s: %.300s", answer.Status, text)
	}
	if answer.StatusCode == http.StatusServiceUnavailable && answer.Header.Get("Retry-After") == "" {
		return "", fmt.Errorf("%s without Retry-After: %.300s", answer.Status, text)
	}
	return failure.Code, nil
}

// add counts an answer.
func (t *tally) add(code string, err error, took time.Duration, allow []string) {
	t.worst = max(t.worst, took)
	switch {
	case err == nil && code == "":
		t.served++
		t.times = append(t.times, took)
		return
	case err == nil && (code == "overloaded" || code == "not_ready"):
		t.refused++
		return
	case err == nil && slices.Contains(allow, code):
		t.allowed++
		return
	case err == nil:
		err = errors.New(code)
	}
	t.wrong++
	if len(t.first) < 3 {
		t.first = append(t.first, err.Error())
	}
}

// judge returns what is wrong with the answers, by the rules for all attacks.
func (t *tally) judge(s *service.Service) error {
	if err := s.Died(); err != nil {
		return err
	}
	if err := t.answers(); err != nil {
		return err
	}
	if t.served == 0 && t.refused == 0 && t.allowed == 0 {
		return errors.New("nothing was answered")
	}
	return nil
}

// String returns the tally's part of an attack's line.
func (t *tally) String() string {
	text := fmt.Sprintf("%d served, %d refused", t.served, t.refused)
	if t.allowed > 0 {
		text += fmt.Sprintf(", %d failed in allowed ways", t.allowed)
	}
	if t.wrong > 0 {
		text += fmt.Sprintf(", %d WRONG", t.wrong)
	}
	return text + fmt.Sprintf(", the longest %.2f s", t.worst.Seconds())
}

// at returns a percentile of the times of served requests.
func (t *tally) at(percent float64) time.Duration {
	if len(t.times) == 0 {
		return hang
	}
	return measure.Percentile(t.times, percent)
}

// answers is like judge, but for a server that has been stopped in the meantime.
func (t *tally) answers() error {
	if t.wrong > 0 {
		return fmt.Errorf("%d answers were neither right nor 503, such as: %s", t.wrong, strings.Join(t.first, " | "))
	}
	return nil
}
