package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolsrv/toolsrv/internal/state"
)

// rights records which permissions this server's user lacks. NATS reports a denial separately, and never answers the request. So a caller that waits
// for an answer asks here why none comes.
type rights struct {
	mu      sync.Mutex
	denied  *deniedError // the last one
	at      time.Time
	told    map[string]bool // permissions that toolsrv can do without, and whose lack was logged
	next    int
	waiting map[int]context.CancelCauseFunc
}

// A deniedError names a permission that the user lacks.
type deniedError struct{ do, subject string }

func (e *deniedError) Error() string {
	return fmt.Sprintf("NATS doesn't allow this server's user to %s %s: give it that permission", e.do, e.subject)
}

// Unwrap returns state.ErrUnavailable.
func (e *deniedError) Unwrap() error { return state.ErrUnavailable }

// violation matches the text with which NATS reports a denial. The subject's length is not bounded in the pattern: that would take 165 KB
// in every process.
var violation = regexp.MustCompile(`(?i)permissions violation for (publish|subscription) to "([!#-~]+)"`)

// mostSubject is the greatest length in bytes of a subject that an error names.
const mostSubject = 300

// denial returns what an error says was denied, or nil.
func denial(err error) *deniedError {
	if !errors.Is(err, client.ErrPermissionViolation) {
		return nil
	}
	said := violation.FindStringSubmatch(err.Error())
	switch {
	case said == nil || len(said[2]) > mostSubject: // the error has another form in this version of NATS, or names too long a subject
		return &deniedError{"use", "a subject"}
	case strings.EqualFold(said[1], "publish"):
		return &deniedError{"publish to", rightTo(said[2])}
	}
	return &deniedError{"subscribe to", rightTo(said[2])}
}

// rightTo returns the permission for a subject as operators would write it. Parts that differ for each request are replaced by a wildcard.
func rightTo(subject string) string {
	parts, most := strings.Split(subject, "."), 0
	switch {
	case strings.HasPrefix(subject, "$JS.API.CONSUMER.MSG.NEXT."):
		most = 6
	case strings.HasPrefix(subject, "$JS.API.CONSUMER."):
		most = 5
	case strings.HasPrefix(subject, "$KV."), strings.HasPrefix(subject, "$O."), strings.HasPrefix(subject, "toolsrv."):
		most = 2
	case strings.HasPrefix(subject, "_INBOX."):
		most = 1
	}
	if most > 0 && len(parts) > most {
		subject = strings.Join(parts[:most], ".") + ".>"
	}
	return subject
}

// note records an error that the connection reports. topics is the prefix of the subjects by which servers talk to each other.
func (r *rights) note(err error, topics string, log *slog.Logger) {
	denied := denial(err)
	if denied == nil || denied.subject == "$JS.API.INFO" { // then it is not known how full the account is
		log.Debug("NATS", slog.Any("error", err))
		return
	}
	without := ""
	switch {
	case strings.HasPrefix(denied.subject, topics):
		without = "NATS doesn't let servers hear each other: rates hold for each server separately, and an MCP session ends on one only"
	case strings.HasPrefix(denied.subject, "$JS.API.CONSUMER.DELETE."):
		without = "NATS doesn't let this server delete its consumers, so each lingers for half a minute"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if without != "" {
		if r.told == nil {
			r.told = map[string]bool{}
		}
		if !r.told[without] {
			r.told[without] = true
			log.Warn(without, slog.Any("error", denied))
		}
		return
	}
	r.denied, r.at = denied, time.Now()
	for _, cancel := range r.waiting {
		cancel(denied)
	}
}

// since returns what was denied since a moment, or nil.
func (r *rights) since(moment time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.denied == nil || r.at.Before(moment) {
		return nil // not a nil *deniedError
	}
	return r.denied
}

// why returns why a request that began at a moment has failed with err. If a permission was denied since then, and err is not an answer of the
// server, it returns the denial; otherwise it returns err.
func (r *rights) why(began time.Time, err error) error {
	if err == nil {
		return nil
	}
	if denied := denial(err); denied != nil {
		return denied
	}
	answer, isAnswer := errors.AsType[jetstream.JetStreamError](err)
	if isAnswer && answer.APIError() != nil || errors.Is(err, errGone) || errors.Is(err, ErrObject) || errors.Is(err, ErrNoObject) {
		return err
	}
	return cmp.Or(r.since(began), err)
}

// asking returns a context for requests to NATS. It ends when any request is denied, so that nobody waits for an answer that will not come. done ends
// the context, and returns why the request has failed, as why does.
func (r *rights) asking(ctx context.Context) (_ context.Context, done func(error) error) {
	began := time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting == nil {
		r.waiting = map[int]context.CancelCauseFunc{}
	}
	place := r.next
	r.next++
	r.waiting[place] = cancel
	return ctx, func(err error) error {
		r.mu.Lock()
		delete(r.waiting, place)
		r.mu.Unlock()
		cancel(nil)
		return r.why(began, err)
	}
}
