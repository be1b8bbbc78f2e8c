package nats

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/textfile"
	"github.com/toolsrv/toolsrv/internal/tlsfiles"
)

// Limits and intervals of a connection.
const (
	dialLimit    = 5 * time.Second
	askLimit     = 2 * time.Second
	tellEvery    = 10 * time.Second
	tryEvery     = 500 * time.Millisecond
	pingEvery    = 5 * time.Second
	leastPayload = 64 << 10
	// maxPart is the size of the largest message in bytes.
	maxPart = 8 << 20
	// besides is how much of a message is reserved for its subject and headers.
	besides = 8 << 10
)

// connect connects, and makes the bucket if it is missing. It tries again as long as the failure may be temporary, as while a server starts.
func (s *Store) connect(ctx context.Context) error {
	options, err := s.clientOptions()
	if err != nil {
		return err
	}
	told := time.Now().Add(time.Second - tellEvery) // the first line is logged after a second
	for {
		failed := s.reach(options)
		if failed == nil {
			if failed = s.makeBucket(ctx); failed == nil {
				return nil
			}
		}
		if isFinal(failed) {
			return failed
		}
		s.health.mu.Lock()
		s.health.cut = &Cut{s.health.cut.Since, failed}
		s.health.mu.Unlock()
		if time.Since(told) > tellEvery {
			told = time.Now()
			s.options.Log.Warn("waiting for NATS, which holds the state", slog.String("url", s.options.URL), slog.Any("error", failed))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(tryEvery):
		}
	}
}

// reach connects, unless there is a connection already.
func (s *Store) reach(options []client.Option) error {
	if s.conn != nil {
		return nil
	}
	conn, err := client.Connect(s.options.URL, options...)
	if err != nil {
		return err
	}
	if conn.MaxPayload() < leastPayload {
		conn.Close()
		return finalError{fmt.Errorf("the server accepts messages of %d bytes: set max_payload to at least %d", conn.MaxPayload(), leastPayload)}
	}
	js, err := jetstream.New(conn)
	if err != nil {
		conn.Close()
		return finalError{err}
	}
	s.conn, s.js = conn, js
	return nil
}

// A finalError is an error that does not go away if one waits.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

func isFinal(err error) bool {
	final, ok := errors.AsType[finalError](err)
	_, denied := errors.AsType[*deniedError](err)
	return ok && final.error != nil || denied || errors.Is(err, client.ErrAuthorization) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount)
}

func (s *Store) clientOptions() ([]client.Option, error) {
	o := []client.Option{
		client.Name("toolsrv"),
		client.Timeout(dialLimit),
		client.MaxReconnects(-1),
		client.ReconnectWait(50 * time.Millisecond),
		client.ReconnectJitter(200*time.Millisecond, 500*time.Millisecond),
		client.ReconnectBufSize(-1), // a message that can't be sent fails at once, and is not sent later when nobody waits for it any more
		client.PingInterval(pingEvery),
		client.MaxPingsOutstanding(2),
		client.IgnoreAuthErrorAbort(),
		client.DisconnectErrHandler(func(*client.Conn, error) { wake(s.looking) }),
		client.ReconnectHandler(func(*client.Conn) {
			s.again()
			wake(s.looking)
		}),
		client.ErrorHandler(func(_ *client.Conn, _ *client.Subscription, err error) {
			s.rights.note(err, s.bucket.topic(""), s.options.Log)
		}),
	}
	if s.options.Dial != nil {
		o = append(o, client.InProcessServer(s.options.Dial))
	}
	if s.options.Credentials != "" {
		if _, err := textfile.Regular(s.options.Credentials, textfile.Max); err != nil {
			return nil, fmt.Errorf("read the credentials: %w", err)
		}
		o = append(o, client.UserCredentials(s.options.Credentials)) // the client reads it for each connection
	}
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	isSecure := s.options.CA != "" || s.options.Certificate != "" || strings.HasPrefix(s.options.URL, "tls://")
	if s.options.CA != "" {
		roots, _, err := tlsfiles.Authorities(s.options.CA, false)
		if err != nil {
			return nil, err
		}
		secure.RootCAs = roots
	}
	if s.options.Certificate != "" {
		if _, err := tls.LoadX509KeyPair(s.options.Certificate, s.options.Key); err != nil {
			return nil, fmt.Errorf("read the certificate for NATS: %w", err)
		}
		secure.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { // the files may have been renewed
			pair, err := tls.LoadX509KeyPair(s.options.Certificate, s.options.Key)
			return &pair, err
		}
	}
	if isSecure {
		o = append(o, client.Secure(secure))
	}
	return o, nil
}

// Check returns an error if the files that the options name can't be used. It does not connect.
func Check(o Options) error {
	_, err := (&Store{options: o}).clientOptions()
	return err
}

// wake sends on a channel that has room for one value, unless it is full.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// batchesSince is the version of the first servers with atomic batches.
const batchesSince = "2.12"

// description is the description of a state's bucket.
const description = "the state of toolsrv"

// maxFollowers is how many consumers the stream may have. A consumer counts for half a minute after its process is gone. Servers allow 1,000 if the
// stream sets no number.
const maxFollowers = 10_000

// maximumConsumers is the code of the server's error that a stream may not have so many consumers.
const maximumConsumers jetstream.ErrorCode = 10026

// makeBucket makes the bucket if it is missing, with three replicas in a cluster. If an existing bucket lacks settings that a state needs,
// makeBucket changes them or returns an error.
func (s *Store) makeBucket(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	ctx, done := s.rights.asking(ctx)
	defer func() { err = done(err) }()
	stream, err := s.js.Stream(ctx, s.bucket.stream())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		config := jetstream.StreamConfig{
			Name: s.bucket.stream(), Description: description, Subjects: []string{s.bucket.subjects()},
			MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage, Replicas: 1,
			DenyDelete: true, AllowDirect: true, AllowMsgTTL: true, AllowAtomicPublish: true,
			MaxConsumers: maxFollowers,
		}
		if s.conn.ConnectedClusterName() != "" {
			config.Replicas = 3
		}
		stream, err = s.js.CreateStream(ctx, config)
		if failed, ok := errors.AsType[*jetstream.APIError](err); ok && failed.ErrorCode == maximumConsumers { // the account allows fewer
			config.MaxConsumers = 0
			stream, err = s.js.CreateStream(ctx, config)
		}
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another process has just made it
			stream, err = s.js.Stream(ctx, s.bucket.stream())
		}
	}
	if err != nil {
		return fmt.Errorf("make the bucket %s: %w", s.bucket, err)
	}
	info := stream.CachedInfo()
	if err := led(info); err != nil {
		return fmt.Errorf("make the bucket %s: %w", s.bucket, err)
	}
	if config := info.Config; config.Description != description {
		// Somebody else has made it. The change below would lose another program's history.
		if info.State.LastSeq > 0 || !slices.Equal(config.Subjects, []string{s.bucket.subjects()}) || config.Mirror != nil || len(config.Sources) > 0 {
			return finalError{fmt.Errorf("the bucket %s is in use, and not by toolsrv: name another one with state.prefix", s.bucket)}
		}
		config.Description, config.AllowRollup = description, false
		config.AllowAtomicPublish, config.AllowMsgTTL, config.MaxMsgsPerSubject = true, true, 1
		if stream, err = s.js.UpdateStream(ctx, config); err != nil {
			return finalError{fmt.Errorf("allow atomic batches in the bucket %s: %w", s.bucket, err)}
		}
	}
	if !stream.CachedInfo().Config.AllowAtomicPublish { // the server does not know the setting
		return finalError{fmt.Errorf("the server is NATS %s, which has no atomic batches: use %s or newer", s.conn.ConnectedServerVersion(), batchesSince)}
	}
	if err := s.loses(&stream.CachedInfo().Config); err != nil {
		return finalError{err}
	}
	return nil
}

// loses returns an error if the stream is configured to drop messages, or to refuse some. If a switch were lost, a tool that was switched off would
// be called again.
func (s *Store) loses(c *jetstream.StreamConfig) error {
	what := ""
	switch most := min(s.conn.MaxPayload(), maxPart); {
	case c.MaxAge > 0:
		what = fmt.Sprintf("loses whatever is older than %v: set its max-age to 0", c.MaxAge)
	case c.Retention != jetstream.LimitsPolicy:
		what = fmt.Sprintf("has the retention %q, which loses whatever was read: make it with \"limits\"", c.Retention)
	case c.Discard != jetstream.DiscardNew && (c.MaxBytes > 0 || c.MaxMsgs > 0):
		what = "makes room for new messages by losing old ones: set its discard policy to new"
	case c.MaxMsgSize > 0 && int64(c.MaxMsgSize) < most:
		what = fmt.Sprintf("accepts messages of at most %d bytes: set its max-msg-size to -1, or to %d", c.MaxMsgSize, most)
	default:
		return nil
	}
	return fmt.Errorf("the stream %s %s", c.Name, what)
}

// errGone is returned for a message that the stream does not have.
var errGone = errors.New("the message is gone")

// A stored is a message of the stream.
type stored struct {
	Subject  string `json:"subject"`
	Sequence uint64 `json:"seq"`
	Data     []byte `json:"data"`
}

// ask asks the leader of the stream for a message: the last one of a subject, or the one with a sequence.
func (s *Store) ask(ctx context.Context, subject string, sequence uint64) (m stored, err error) {
	return s.askOf(ctx, s.bucket.stream(), wanted{Sequence: sequence, Last: subject})
}

// wanted selects a message: by its sequence, as the last one of a subject, or as the next one of a subject from a sequence on.
type wanted struct {
	Sequence uint64 `json:"seq,omitempty"`
	Last     string `json:"last_by_subj,omitempty"`
	Next     string `json:"next_by_subj,omitempty"`
}

// askOf is ask for any stream.
func (s *Store) askOf(ctx context.Context, stream string, w wanted) (m stored, err error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	request, err := json.Marshal(w)
	if err != nil {
		return m, err
	}
	began := time.Now()
	answer, err := s.conn.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET."+stream, request)
	if err != nil {
		return m, fmt.Errorf("read from NATS: %w", s.rights.why(began, err))
	}
	var said struct {
		Message stored             `json:"message"`
		Error   jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &said); err != nil {
		return m, fmt.Errorf("read from NATS: %w", err)
	}
	switch {
	case said.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return m, errGone
	case said.Error.ErrorCode == jetstream.JSErrCodeStreamNotFound:
		return m, jetstream.ErrStreamNotFound
	case said.Error.Code != 0:
		return m, fmt.Errorf("read from NATS: %s", cmp.Or(said.Error.Description, "it refuses"))
	}
	return said.Message, nil
}

// fetch reads the value of an entry from the servers, since the copy doesn't have it.
func (s *Store) fetch(ctx context.Context, space string, e *entry) ([]byte, error) {
	if e.parts == 0 {
		m, err := s.ask(ctx, "", e.version)
		if err != nil {
			return nil, err
		}
		_, value, err := parseHead(m.Data, state.MaxValue)
		if m.Subject != s.bucket.head(space, e.key) || err != nil || len(value) != e.size {
			return nil, fmt.Errorf("the message %d of the bucket was changed: %w", e.version, errForeign)
		}
		return value, nil
	}
	value := make([]byte, 0, e.size)
	for i := range e.parts {
		m, err := s.ask(ctx, "", e.version-uint64(e.parts-i))
		if err != nil {
			return nil, err
		}
		if m.Subject != s.bucket.part(space, e.key, i+1) || len(value)+len(m.Data) > e.size {
			return nil, fmt.Errorf("the parts of the value at %d of the bucket were changed: %w", e.version, errForeign)
		}
		value = append(value, m.Data...)
	}
	if len(value) != e.size {
		return nil, fmt.Errorf("the value at %d of the bucket is incomplete: %w", e.version, errForeign)
	}
	return value, nil
}
