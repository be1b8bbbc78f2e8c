package clients_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/oauth2-proxy/mockoidc"
	"golang.org/x/oauth2"
)

// TestLogin lets a client that knows only the service find out where to log in, log in with a code and PKCE, and call tools with the token that it gets.
func TestLogin(t *testing.T) {
	t.Parallel()
	issuer, err := mockoidc.Run()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = issuer.Shutdown() })
	tools := t.TempDir()
	write(t, tools, "shop", echo("order", orderSchema))
	write(t, tools, "till", echo("open", orderSchema))
	s := start(t, tools, fmt.Sprintf("[auth.oidc]\nissuer = '%s'\naudience = ['%s']\n[[auth.oidc.rule]]\nclaim = 'groups'\nvalue = 'engineering'\nscopes = ['shop']\n",
		issuer.Issuer(), issuer.ClientID))

	ann := &mockoidc.MockUser{Subject: "ann", Groups: []string{"engineering"}}
	l := discover(t, s)
	l.client, l.secret = issuer.ClientID, issuer.ClientSecret
	login := func(u *mockoidc.MockUser) string {
		issuer.QueueUser(u)
		return l.login(t)
	}
	want := func(what, token, path string, status int, text string) {
		t.Helper()
		if got, body := call(t, s.url+path, token); got != status || !strings.Contains(body, text) {
			t.Errorf("%s: got %d %s, want %d %s", what, got, body, status, text)
		}
	}
	good := login(ann)
	want("a user who has logged in", good, "/shop/order", 422, "invalid_arguments")
	want("another group's tool", good, "/till/open", 404, "not_found")
	want("a token with another signature", good[:len(good)-8]+"AAAAAAAA", "/shop/order", 401, "unauthorized")
	want("a user without a group", login(&mockoidc.MockUser{Subject: "eve", Groups: []string{"sales"}}), "/shop/order", 403, "")

	issuer.FastForward(-time.Hour)
	want("a token that has expired", login(ann), "/shop/order", 401, "unauthorized")
	issuer.FastForward(2 * time.Hour)
	want("a token that is not valid yet", login(ann), "/shop/order", 401, "unauthorized")
	issuer.FastForward(-time.Hour)

	if issuer.Keypair, err = mockoidc.RandomKeypair(2048); err != nil {
		t.Fatal(err)
	}
	next := login(ann)
	for deadline := time.After(startLimit); ; { // the issuer is asked every few seconds at most
		if status, _ := call(t, s.url+"/shop/order", next); status == 422 {
			break
		}
		select {
		case <-deadline:
			t.Fatal("a token signed with a new key is refused")
		case <-time.After(100 * time.Millisecond):
		}
	}
	want("a token signed with a withdrawn key", good, "/shop/order", 401, "unauthorized")
}

// A loginClient logs people in as agents do.
type loginClient struct{ authorize, token, client, secret string }

// discover sends a service a request without a token, and follows the answer to the addresses for logging in.
func discover(t *testing.T, s *service) *loginClient {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/mcp", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	challenge := strings.Join(answer.Header.Values("WWW-Authenticate"), ", ")
	metadata := regexp.MustCompile(`resource_metadata="([^"]+)"`).FindStringSubmatch(challenge)
	if answer.StatusCode != http.StatusUnauthorized || metadata == nil {
		t.Fatalf("without a token: got %s and %q", answer.Status, challenge)
	}
	var resource struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
	}
	fetch(t, metadata[1], &resource)
	if resource.Resource != s.url+"/mcp" || len(resource.Servers) != 1 {
		t.Fatalf("%s: got %+v", metadata[1], resource)
	}
	var provider struct {
		Authorize string `json:"authorization_endpoint"`
		Token     string `json:"token_endpoint"`
	}
	fetch(t, resource.Servers[0]+"/.well-known/openid-configuration", &provider)
	return &loginClient{authorize: provider.Authorize, token: provider.Token}
}

// login logs the issuer's next user in, and returns that user's token.
func (l *loginClient) login(t *testing.T) string {
	t.Helper()
	config := oauth2.Config{ClientID: l.client, ClientSecret: l.secret, RedirectURL: "http://127.0.0.1/back", Scopes: []string{"openid", "groups"},
		Endpoint: oauth2.Endpoint{AuthURL: l.authorize, TokenURL: l.token}}
	verifier := oauth2.GenerateVerifier()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.AuthCodeURL("state", oauth2.S256ChallengeOption(verifier)), nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultTransport.RoundTrip(r) // does not follow the redirect back to the client
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	back, err := url.Parse(answer.Header.Get("Location"))
	if err != nil || back.Query().Get("code") == "" || back.Query().Get("state") != "state" {
		t.Fatalf("the issuer: got %s to %s, %v", answer.Status, back, err)
	}
	token, err := config.Exchange(t.Context(), back.Query().Get("code"), oauth2.VerifierOption(verifier))
	if err != nil {
		t.Fatal(err)
	}
	id, ok := token.Extra("id_token").(string)
	if !ok {
		t.Fatal("the issuer gives no id_token")
	}
	return id
}

// fetch gets a document without showing a token.
func fetch(t *testing.T, url string, to any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(to); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s, %v", url, answer.Status, err)
	}
}

// call calls a tool without its arguments.
func call(t *testing.T, url, token string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}
