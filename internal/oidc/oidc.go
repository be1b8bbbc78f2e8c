// Package oidc identifies callers by tokens that an OpenID Connect issuer has signed. The issuer's keys are read in the background, and stay in use
// while it can't be reached.
package oidc

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/toolsrv/toolsrv/internal/nothttp"
	"github.com/toolsrv/toolsrv/internal/text"
)

const (
	// maxAnswer is the largest answer of the issuer in bytes.
	maxAnswer = 256 << 10
	// askTime is how long the issuer may take for an answer.
	askTime = 5 * time.Second
	// maxKeys is how many keys the issuer may have, and maxURL the longest address in bytes.
	maxKeys = 100
	maxURL  = 2000
	// refresh is how often the keys are read again, so that a revoked key is no longer trusted.
	refresh = 10 * time.Minute
	// leastPause is the shortest pause between two requests to the issuer, however many tokens with unknown keys come. mostPause is the longest pause
	// while the issuer can't be reached.
	leastPause = 5 * time.Second
	mostPause  = time.Minute
	// patience is how long a caller's request waits for new keys, and maxWaiting how many requests may wait.
	patience   = 3 * time.Second
	maxWaiting = 100
)

// An Issuer keeps the keys of an issuer. It is safe for concurrent use.
type Issuer struct {
	url    string
	logger *slog.Logger
	client *http.Client
	pause  time.Duration // leastPause

	keys    atomic.Pointer[keySet]
	wake    chan struct{} // holds a value if a request waits for new keys
	waiting chan struct{} // has a value for each request that waits

	mu    sync.Mutex
	asked time.Time     // when the last request to the issuer began
	ended chan struct{} // closed when the next request to the issuer has been answered
}

// A keySet has the keys that an issuer has published. It never changes.
type keySet struct {
	keys   []jose.JSONWebKey
	shown  string // the keys as JSON, to tell whether they have changed
	number uint64
}

// CheckURL returns what is wrong with the address of an issuer, or nil. Without https, anybody in between could pose as the issuer, so http is only
// accepted for loopback addresses, as in tests.
func CheckURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || len(address) > maxURL || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "":
		return errors.New(`is not the address of an issuer: use one such as "https://login.example.com/realms/acme"`)
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
		return nil
	}
	return errors.New("must begin with https://, since its keys decide who may call")
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// NewIssuer returns an issuer. Run reads its keys.
func NewIssuer(address string, logger *slog.Logger) *Issuer {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10, TLSHandshakeTimeout: askTime,
		DialContext: (&net.Dialer{Timeout: askTime}).DialContext,
	}
	return &Issuer{
		url: address, logger: logger, pause: leastPause, wake: make(chan struct{}, 1), waiting: make(chan struct{}, maxWaiting), ended: make(chan struct{}),
		client: &http.Client{Transport: transport, Timeout: askTime, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
			return errors.New("it redirects elsewhere: set auth.oidc.issuer to the issuer's own address")
		}},
	}
}

// URL returns the issuer's address.
func (i *Issuer) URL() string { return i.url }

// Run reads the keys at once, and again from time to time, until ctx ends.
func (i *Issuer) Run(ctx context.Context) {
	pause, away := i.pause, false
	for {
		i.mu.Lock()
		i.asked = time.Now()
		i.mu.Unlock()
		err := i.read(ctx)
		if ctx.Err() != nil {
			return
		}
		switch {
		case err != nil && !away:
			i.logger.Warn("the token issuer can't be asked for its keys: the known ones stay in use", "issuer", i.url, "known", i.known(), "error", err)
		case err == nil && away:
			i.logger.Info("the token issuer can be asked again", "issuer", i.url)
		}
		away = err != nil
		i.mu.Lock()
		close(i.ended)
		i.ended = make(chan struct{})
		i.mu.Unlock()
		next := refresh
		if pause = min(2*pause, mostPause); away {
			next = pause
		} else {
			pause = i.pause
		}
		if !i.sleep(ctx, next) {
			return
		}
	}
}

// sleep waits until a request needs new keys, but at least for i.pause, or until a time has passed.
func (i *Issuer) sleep(ctx context.Context, most time.Duration) bool {
	least, end := time.NewTimer(i.pause), time.NewTimer(most)
	defer least.Stop()
	defer end.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-least.C:
	}
	select {
	case <-ctx.Done():
		return false
	case <-i.wake:
	case <-end.C:
	}
	return true
}

func (i *Issuer) known() int {
	if s := i.keys.Load(); s != nil {
		return len(s.keys)
	}
	return 0
}

// more waits for newer keys if they may come soon. It reports whether there are any.
func (i *Issuer) more(ctx context.Context) bool {
	select {
	case i.waiting <- struct{}{}:
		defer func() { <-i.waiting }()
	default:
		return false
	}
	i.mu.Lock()
	ended, known := i.ended, i.keys.Load()
	early := known != nil && time.Since(i.asked) < i.pause
	i.mu.Unlock()
	if early {
		return false
	}
	select {
	case i.wake <- struct{}{}:
	default: // somebody has asked
	}
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-ended:
	case <-limit.C:
	case <-ctx.Done():
	}
	return i.keys.Load() != known
}

// read reads the keys once.
func (i *Issuer) read(ctx context.Context) error {
	var document struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := i.ask(ctx, Discovery(i.url), &document); err != nil {
		return fmt.Errorf("read its configuration: %w", err)
	}
	if document.Issuer != i.url {
		return fmt.Errorf("it calls itself %q: set auth.oidc.issuer to that, if it is right", text.Short(document.Issuer))
	}
	if err := CheckURL(document.Keys); err != nil {
		return fmt.Errorf("the address of its keys, %q, %w", text.Short(document.Keys), err)
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := i.ask(ctx, document.Keys, &set); err != nil {
		return fmt.Errorf("read its keys: %w", err)
	}
	if len(set.Keys) > maxKeys {
		return fmt.Errorf("it has %d keys; at most %d are allowed", len(set.Keys), maxKeys)
	}
	next := &keySet{}
	var shown strings.Builder
	for _, raw := range set.Keys {
		var key jose.JSONWebKey
		if json.Unmarshal(raw, &key) != nil || !isUsable(&key) {
			continue // the issuer may have keys of other kinds, for other uses
		}
		next.keys = append(next.keys, key)
		shown.Write(raw)
	}
	if len(next.keys) == 0 {
		return errors.New("it has no key for EdDSA, ES256 or RS256")
	}
	next.shown = shown.String()
	before := i.keys.Load()
	switch {
	case before == nil:
		i.logger.Info("the token issuer's keys were read", "issuer", i.url, "keys", len(next.keys))
	case before.shown == next.shown:
		return nil
	default:
		next.number = before.number + 1
		i.logger.Info("the token issuer's keys have changed", "issuer", i.url, "keys", len(next.keys))
	}
	i.keys.Store(next)
	return nil
}

// Discovery returns the address of an issuer's configuration.
func Discovery(issuer string) string {
	return strings.TrimSuffix(issuer, "/") + "/.well-known/openid-configuration"
}

// ask requests an address and decodes the answer, which must be JSON.
func (i *Issuer) ask(ctx context.Context, address string, to any) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	answer, err := i.client.Do(request)
	if err != nil {
		return nothttp.Error(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %d", text.Short(address), answer.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return err
	case len(body) > maxAnswer:
		return fmt.Errorf("%s answered with more than %d bytes", text.Short(address), maxAnswer)
	}
	if err := json.Unmarshal(body, to); err != nil {
		return fmt.Errorf("%s did not answer with the expected JSON", text.Short(address))
	}
	return nil
}

// isUsable reports whether a key can verify tokens of the algorithms that we accept.
func isUsable(k *jose.JSONWebKey) bool {
	if k.Use == "enc" || k.Algorithm != "" && !isAlgorithm(k.Algorithm) || !k.Valid() {
		return false
	}
	switch key := k.Key.(type) {
	case ed25519.PublicKey:
		return true
	case *ecdsa.PublicKey:
		return key.Params().BitSize == 256
	case *rsa.PublicKey:
		return key.N.BitLen() >= 2048 && key.N.BitLen() <= 8192
	}
	return false // private and secret keys are not usable, either
}

// algorithms are the accepted ones: none with a shared secret, and none of doubtful strength.
func algorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{jose.EdDSA, jose.ES256, jose.RS256}
}

func isAlgorithm(name string) bool {
	return name == string(jose.EdDSA) || name == string(jose.ES256) || name == string(jose.RS256)
}
