package toolsrv

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/toolsrv/toolsrv/sdk/go/internal/typed"
)

// Needs declare what a module or a tool can't do without, beyond computing. The operator sees them and grants them or not; a tool that lacks one of
// its needs is not served. What is not declared can't be used, whatever is granted. All of them may be left out.
type Needs struct {
	// HTTP are the beginnings of the URLs that package http sends requests to: an origin such as "https://api.example.com", one with a path
	// up to a slash such as "https://api.example.com/v2/", or one with * for everything before a domain, such as "https://*.example.com".
	HTTP []string
	// KV is whether package kv is used.
	KV bool
	// Secrets are the names of the secrets that package secrets reads.
	Secrets []string
	// Settings is a value of the struct into which package settings reads them. Only its type counts. It can be declared only for a module.
	Settings any
	// Tools are the paths of the tools that package tools calls.
	Tools []string
	// Files are the names of folders that the tool reads, which are at the root: "geo" is /geo.
	Files []string
}

// manifestNeeds are needs as the manifest has them.
type manifestNeeds struct {
	HTTP     []string        `json:"http,omitempty"`
	KV       bool            `json:"kv,omitempty"`
	Secrets  []string        `json:"secrets,omitempty"`
	Settings json.RawMessage `json:"settings,omitempty"`
	Tools    []string        `json:"tools,omitempty"`
	Files    []string        `json:"files,omitempty"`
}

// The bounds of the server.
const (
	maxNeeds     = 100 // of each kind
	maxNeededURL = 2000
)

// copied returns needs that share nothing with n.
func (n Needs) copied() Needs {
	for _, list := range []*[]string{&n.HTTP, &n.Secrets, &n.Tools, &n.Files} {
		*list = append([]string(nil), *list...)
	}
	return n
}

// describe returns the needs as the manifest has them, or nil if there are none.
func (n Needs) describe() (*manifestNeeds, error) {
	if !n.KV && n.Settings == nil && len(n.HTTP)+len(n.Secrets)+len(n.Tools)+len(n.Files) == 0 {
		return nil, nil
	}
	for _, list := range []struct {
		kind    string
		entries []string
		check   func(string) error
	}{{"http", n.HTTP, checkNeededURL}, {"secrets", n.Secrets, checkSecretName}, {"tools", n.Tools, checkPath}, {"files", n.Files, checkName}} {
		if err := checkList(list.entries, list.check); err != nil {
			return nil, fmt.Errorf("its needs: %s: %w", list.kind, err)
		}
	}
	out := &manifestNeeds{HTTP: n.HTTP, KV: n.KV, Secrets: n.Secrets, Tools: n.Tools, Files: n.Files}
	if n.Settings != nil {
		t := reflect.TypeOf(n.Settings)
		if t.Kind() != reflect.Struct {
			return nil, errors.New("its needs: Settings is a value of a struct, such as Settings{}")
		}
		schema, err := typed.Arguments(t)
		if err != nil {
			return nil, fmt.Errorf("its needs: settings: %w", err)
		}
		out.Settings = schema
	}
	return out, nil
}

// checkList reports what is wrong with needs of one kind, or nil.
func checkList(entries []string, check func(string) error) error {
	if len(entries) > maxNeeds {
		return fmt.Errorf("%d are too many; at most %d are allowed", len(entries), maxNeeds)
	}
	seen := make(map[string]bool, len(entries))
	for _, entry := range entries {
		if err := check(entry); err != nil {
			return err
		}
		if seen[entry] {
			return fmt.Errorf("%q appears twice: remove one", entry)
		}
		seen[entry] = true
	}
	return nil
}

// checkNeededURL reports what is wrong with the form of an address, or nil. Those who grant it decide what it means.
func checkNeededURL(url string) error {
	_, host, ok := strings.Cut(url, "://")
	ok = ok && (strings.HasPrefix(url, "https:") || strings.HasPrefix(url, "http:"))
	odd := strings.IndexFunc(url, func(r rune) bool { return r <= ' ' || r > '~' || strings.IndexByte("?#@\\{}<>\"^|`", byte(r)) >= 0 }) >= 0
	if !ok || odd || host == "" || host[0] == '/' || len(url) > maxNeededURL {
		return fmt.Errorf("%q is not the address of a service: use one such as https://api.example.com or https://*.example.com/v2/", url)
	}
	return nil
}

// checkSecretName reports what is wrong with the name of a secret, or nil.
func checkSecretName(name string) error {
	if checkName(strings.ReplaceAll(name, ".", "_")) != nil || name[0] == '.' {
		return fmt.Errorf("%q is not a valid name: use 1 to 64 of the characters A-Z a-z 0-9 . _ and -, and do not begin with a dot", name)
	}
	return nil
}

// checkPath reports what is wrong with the path of a tool, or nil.
func checkPath(path string) error {
	slash := strings.LastIndexByte(path, '/')
	if checkName(path[slash+1:]) != nil || checkNamespace(path[:max(slash, 0)]) != nil || slash == 0 {
		return fmt.Errorf("%q is not the path of a tool: name one such as units/convert", path)
	}
	return nil
}
