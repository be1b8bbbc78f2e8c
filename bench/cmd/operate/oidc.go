package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"github.com/toolsrv/toolsrv/bench/internal/measure"
	"github.com/toolsrv/toolsrv/internal/claim"
	"github.com/toolsrv/toolsrv/internal/oidc"
)

// oidc measures how much time a token of an issuer adds to a request, once the token has been verified.
func (b *bench) oidc(ctx context.Context) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	keys := &oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: "1", Algorithm: "ES256"}}}
	provider := httptest.NewServer(keys)
	defer provider.Close()
	keys.SetIssuer(provider.URL)
	issuer := oidc.NewIssuer(provider.URL, slog.New(slog.NewTextHandler(io.Discard, nil)))
	running, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		issuer.Run(running)
	}()
	defer func() {
		stop()
		<-ended
	}()
	v, err := oidc.New(issuer, oidc.Options{Audience: []string{"toolsrv"}, Rules: []claim.Rule{{Claim: "groups", Value: "team-a", Scopes: []string{"math/*"}}}})
	if err != nil {
		return err
	}
	request := func(subject string) (*http.Request, error) {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
		if err != nil {
			return nil, err
		}
		q.Header.Set("Authorization", "Bearer "+oidctest.SignIDToken(key, "1", "ES256", fmt.Sprintf(`{"iss":%q,"aud":"toolsrv","sub":%q,"exp":%d,"groups":["team-a"],"more":%q}`,
			provider.URL, subject, time.Now().Add(time.Hour).Unix(), strings.Repeat("x", 600))))
		return q, nil
	}
	q, err := request("ann")
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) { // until the keys have been read
		p, err := v.Verify(q)
		if p != nil {
			break
		}
		if time.Now().After(deadline) {
			return errors.Join(errors.New("the token is not accepted"), err)
		}
	}
	measured := func(n int, next func(i int) (*http.Request, error)) (list []time.Duration, err error) {
		for i := range n {
			q, err := next(i)
			if err != nil {
				return nil, err
			}
			begun := time.Now()
			p, err := v.Verify(q)
			list = append(list, time.Since(begun))
			if p == nil {
				return nil, errors.Join(errors.New("the token is not accepted"), err)
			}
		}
		return list, nil
	}
	known, err := measured(20_000, func(int) (*http.Request, error) { return q, nil })
	if err != nil {
		return err
	}
	first, err := measured(500, func(i int) (*http.Request, error) { return request(fmt.Sprint("ann-", i)) })
	if err != nil {
		return err
	}
	b.report.Explain("a token of an issuer, by its ES256 signature the first time: %v; again: %v, p99 %v", measure.Percentile(first, 50), measure.Percentile(known, 50), measure.Percentile(known, 99))
	b.report.Figure("oidc_us", measure.Percentile(known, 50).Seconds()*1e6)
	return nil
}
