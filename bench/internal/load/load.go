// Package load makes HTTP requests as fast as they are answered, from a separate process, so that the server's scheduler and garbage collector work
// for the server alone.
package load

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/measure"
)

// Command is the first argument of a program that should run Child.
const Command = "load"

// A Load says what to send, and how. Make its Text with Request.
type Load struct {
	Host        string        // host:port
	Others      []string      // further hosts, among which the connections are divided
	Text        []byte        // the text of one request, which is sent again and again
	Answer      string        // a text that the body of each answer must contain; the status must be 200
	Connections int           // how many connections, each with one request at a time
	Span        time.Duration // how long to measure; before that, the load runs unmeasured for a tenth of this time
}

// Seen has the results of a load.
type Seen struct {
	Requests int     // that were measured
	All      int     // the number of all answers, including those before the measured time
	Rate     float64 // requests per second
	P50, P99 float64 // times of one request, in seconds
}

// Request returns the text of a POST. Headers are lines without line endings.
func Request(host, path, body string, headers ...string) []byte {
	headers = append(headers, "Content-Type: application/json", "Content-Length: "+strconv.Itoa(len(body)))
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\n%s\r\n\r\n%s", path, host, strings.Join(headers, "\r\n"), body)
}

// Generate runs this program again, with Command, to make the requests. Errors there are written to log.
func Generate(ctx context.Context, l Load, log io.Writer) (seen Seen, err error) {
	self, err := os.Executable()
	if err != nil {
		return seen, err
	}
	text, err := json.Marshal(l)
	if err != nil {
		return seen, err
	}
	child := exec.CommandContext(ctx, self, Command)
	child.Stdin, child.Stderr = bytes.NewReader(text), log
	text, err = child.Output()
	if err != nil {
		return seen, fmt.Errorf("generate load: %w", err)
	}
	return seen, json.Unmarshal(text, &seen)
}

// Child reads a load from standard input, makes its requests, and writes the results.
func Child(_ []string, out io.Writer) error {
	var l Load
	if err := json.NewDecoder(os.Stdin).Decode(&l); err != nil {
		return err
	}
	begin := time.Now().Add(l.Span / 10)
	end := begin.Add(l.Span)
	lists, counts, errs := make([][]time.Duration, l.Connections), make([]int, l.Connections), make([]error, l.Connections)
	var all sync.WaitGroup
	for i := range l.Connections {
		host := append([]string{l.Host}, l.Others...)[i%(1+len(l.Others))]
		all.Go(func() { lists[i], counts[i], errs[i] = l.requests(host, begin, end) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	var list []time.Duration
	sent := 0
	for i, l := range lists {
		list = append(list, l...)
		sent += counts[i]
	}
	if len(list) == 0 {
		return errors.New("not one request was answered in time")
	}
	return json.NewEncoder(out).Encode(Seen{
		Requests: len(list), All: sent, Rate: float64(len(list)) / l.Span.Seconds(),
		P50: measure.Percentile(list, 50).Seconds(), P99: measure.Percentile(list, 99).Seconds(),
	})
}

// requests makes one request after another on one connection to a host until end. It returns the times of those requests that began after begin, and
// the number of all requests. It parses answers only as far as necessary, to leave the processor time to the server.
func (l *Load) requests(host string, begin, end time.Time) (list []time.Duration, sent int, err error) {
	c, err := net.Dial("tcp", host)
	if err != nil {
		return nil, 0, err
	}
	defer c.Close()
	if err := c.SetDeadline(end.Add(30 * time.Second)); err != nil {
		return nil, 0, err
	}
	r := bufio.NewReader(c)
	for {
		start := time.Now()
		if start.After(end) {
			return list, sent, nil
		}
		if _, err := c.Write(l.Text); err != nil {
			return nil, 0, err
		}
		if err := answer(r, l.Answer); err != nil {
			return nil, 0, err
		}
		sent++
		if start.After(begin) {
			list = append(list, time.Since(start))
		}
	}
}

// answer reads an answer and checks that it contains what is wanted.
func answer(r *bufio.Reader, want string) error {
	length, status := -1, []byte(nil)
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		if status == nil {
			status = bytes.Clone(line)
		}
		const header = "content-length: "
		if len(line) > len(header) && strings.EqualFold(string(line[:len(header)]), header) {
			if length, err = strconv.Atoi(string(line[len(header):])); err != nil {
				return err
			}
		}
	}
	if length < 0 || length > r.Size() {
		return fmt.Errorf("%s with a body of %d bytes", status, length)
	}
	body, err := r.Peek(length)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(status, []byte("HTTP/1.1 200")) || !bytes.Contains(body, []byte(want)) {
		return fmt.Errorf("got %s %s, want %d with %s", status, body, http.StatusOK, want)
	}
	_, err = r.Discard(length)
	return err
}
