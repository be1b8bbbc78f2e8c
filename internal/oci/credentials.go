package oci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"

	"github.com/toolsrv/toolsrv/internal/textfile"
)

// A keyring finds credentials where docker and podman keep them: in a file, or with a helper program that the file names. The file is read each time,
// so that logging in again needs no restart.
type keyring struct {
	file  string // empty: the files of docker and podman
	found atomic.Bool
}

// check returns an error if the file can't be read.
func (k *keyring) check() error {
	if k.file == "" {
		return nil
	}
	if _, err := os.Stat(k.file); err != nil {
		return fmt.Errorf("read the credentials file: %w", err)
	}
	_, _, err := open(k.file)
	return unreadable(k.file, err)
}

// unreadable returns the error for an unusable file, without quoting it.
func unreadable(file string, err error) error {
	if err == nil {
		return nil
	}
	var path *os.PathError
	if errors.As(err, &path) {
		return fmt.Errorf("read the credentials file: %w", path)
	}
	return fmt.Errorf("%s is not in the format of docker's config.json: log in again to rewrite it", file)
}

// A credentialError means that credentials can't be read. No request has been sent then.
type credentialError struct{ err error }

func (e *credentialError) Error() string { return e.err.Error() }
func (e *credentialError) Unwrap() error { return e.err }

// credential returns the credentials of a host for a repository, or none. As in podman, credentials for the repository, or for a prefix of its name,
// come before those for the whole host.
func (k *keyring) credential(ctx context.Context, host, repository string) (auth.Credential, error) {
	files := []string{k.file}
	if k.file == "" {
		files = usual()
	}
	for _, file := range files {
		store, names, err := open(file)
		if err != nil {
			return auth.EmptyCredential, &credentialError{unreadable(file, err)}
		}
		c := auth.EmptyCredential
		for name := host + "/" + repository; err == nil && c == auth.EmptyCredential && len(name) > len(host); name = name[:strings.LastIndexByte(name, '/')] {
			if names.has(name) {
				c, err = store.Get(ctx, name)
			}
		}
		if err == nil && c == auth.EmptyCredential && !names.onlyBelow(host) {
			c, err = credentials.Credential(store)(ctx, host)
		}
		if err != nil {
			return auth.EmptyCredential, &credentialError{fmt.Errorf("ask for the credentials of %s, as %s says: %w", host, file, err)}
		}
		if c != auth.EmptyCredential {
			k.found.Store(true)
			return c, nil
		}
	}
	return auth.EmptyCredential, nil
}

// names are the hosts and repositories for which a file has credentials.
type names struct {
	Auths   map[string]json.RawMessage `json:"auths"`
	Helpers map[string]string          `json:"credHelpers"`
	Store   string                     `json:"credsStore"`
}

// open opens a file that may be missing, and reads its names.
func open(file string) (store credentials.Store, n names, err error) {
	content, err := textfile.Regular(file, textfile.Max)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, n, err
	default:
		if err := json.Unmarshal(content, &n); err != nil {
			return nil, n, err
		}
	}
	store, err = credentials.NewStore(file, credentials.StoreOptions{}) // this reads the file again
	return store, n, err
}

// has reports whether the file has credentials for exactly this name.
func (n *names) has(name string) bool {
	_, kept := n.Auths[name]
	_, helped := n.Helpers[name]
	return kept || helped
}

// onlyBelow reports whether the file has credentials for repositories of a host, but none for the host itself. Then those of one repository could be
// used for another one by mistake.
func (n *names) onlyBelow(host string) bool {
	below := false
	for name := range n.Auths {
		_, rest, isAddress := strings.Cut(name, "://")
		if !isAddress {
			rest = name
		}
		at, path, _ := strings.Cut(rest, "/")
		switch {
		case at != host:
		case path == "" || isAddress:
			return false
		default:
			below = true
		}
	}
	return below && n.Store == "" && n.Helpers[host] == ""
}

// usual returns where docker and podman keep credentials.
func usual() (files []string) {
	home, _ := os.UserHomeDir() // without a home directory there are fewer places
	switch folder := os.Getenv("DOCKER_CONFIG"); {
	case folder != "":
		files = append(files, filepath.Join(folder, "config.json"))
	case home != "":
		files = append(files, filepath.Join(home, ".docker", "config.json"))
	}
	if file := os.Getenv("REGISTRY_AUTH_FILE"); file != "" {
		return append(files, file)
	}
	if folder := os.Getenv("XDG_RUNTIME_DIR"); folder != "" {
		files = append(files, filepath.Join(folder, "containers", "auth.json"))
	}
	if home != "" {
		files = append(files, filepath.Join(home, ".config", "containers", "auth.json"))
	}
	return files
}
