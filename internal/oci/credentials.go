package oci

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
)

// A keyring finds credentials where docker and podman keep them: in a file, or with a helper that the file names. The file is read each
// time, so that who logs in again need not restart anything.
type keyring struct {
	file  string // empty: those of docker and podman
	found atomic.Bool
}

// check returns an error where the file can't be read.
func (k *keyring) check() error {
	if k.file == "" {
		return nil
	}
	if _, err := os.Stat(k.file); err != nil {
		return fmt.Errorf("read the file of credentials: %w", err)
	}
	_, err := credentials.NewStore(k.file, credentials.StoreOptions{})
	return unreadable(k.file, err)
}

// unreadable says that a file has no credentials, without a part of it.
func unreadable(file string, err error) error {
	if err == nil {
		return nil
	}
	var path *os.PathError
	if errors.As(err, &path) {
		return fmt.Errorf("read the file of credentials: %w", path)
	}
	return fmt.Errorf("%s is not in the form of docker's config.json: log in again to have it written", file)
}

// credential returns the credentials of a host, or none.
func (k *keyring) credential(ctx context.Context, host string) (auth.Credential, error) {
	files := []string{k.file}
	if k.file == "" {
		files = usual()
	}
	for _, file := range files {
		store, err := credentials.NewStore(file, credentials.StoreOptions{})
		if err != nil {
			return auth.EmptyCredential, unreadable(file, err)
		}
		c, err := credentials.Credential(store)(ctx, host)
		if err != nil {
			return auth.EmptyCredential, fmt.Errorf("ask for the credentials of %s, as %s says: %w", host, file, err)
		}
		if c != auth.EmptyCredential {
			k.found.Store(true)
			return c, nil
		}
	}
	return auth.EmptyCredential, nil
}

// usual returns where docker and podman keep credentials.
func usual() (files []string) {
	home, _ := os.UserHomeDir() // without one there are fewer places
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
