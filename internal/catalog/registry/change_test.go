package registry_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/catalog/registry"
	"github.com/toolsrv/toolsrv/internal/oci"
	"github.com/toolsrv/toolsrv/internal/signature"
	"github.com/toolsrv/toolsrv/internal/testkit/ocitest"
)

// change makes a source follow other options. It reports whether they differ.
func change(t *testing.T, s *registry.Source, o registry.Options) bool {
	t.Helper()
	take, err := s.Prepare(o)
	if err != nil {
		t.Fatal(err)
	}
	if take != nil {
		take()
	}
	return take != nil
}

// TestChange makes a source serve what is locked, and then again what its tag refers to. The source also changes while it pulls from a registry that
// hangs.
func TestChange(t *testing.T) {
	t.Parallel()
	at := ocitest.Serve(t)
	one := push(t, at, "1.2", "one")
	two := push(t, at, "1.2", "two")
	var given registry.Options
	s := follow(t, at.Host, "1.2", t.TempDir(), func(o *registry.Options) { given = *o })
	await(t, s, "two", "")
	if change(t, s, given) {
		t.Error("the same options count as different")
	}
	locked := given
	locked.Locked = one.Manifest
	if !change(t, s, locked) {
		t.Error("a lock does not count as a difference")
	}
	await(t, s, "one", "")
	broken := given
	broken.Registry.Credentials = filepath.Join(t.TempDir(), "none.json")
	if _, err := s.Prepare(broken); err == nil || !strings.Contains(err.Error(), "read the credentials file") {
		t.Errorf("got %v", err)
	}
	await(t, s, "one", "")

	hangs := make(chan struct{}, 100)
	at.Before(func(_ http.ResponseWriter, q *http.Request) bool {
		if strings.Contains(q.URL.Path, "/blobs/"+two.Digest) {
			hangs <- struct{}{}
			<-q.Context().Done()
			return true
		}
		return false
	})
	fresh := follow(t, at.Host, "1.2", t.TempDir(), func(o *registry.Options) { given = *o })
	<-hangs
	locked = given
	locked.Locked = one.Manifest
	change(t, fresh, locked)
	await(t, fresh, "one", "")
	at.Before(nil)
	change(t, fresh, given)
	await(t, fresh, "two", "")
	take, err := fresh.Prepare(locked)
	if err != nil {
		t.Fatal(err)
	}
	if err := fresh.Close(); err != nil {
		t.Fatal(err)
	}
	take() // a closed source ignores this
}

// TestChangeSigners checks that a module is verified again when the required signers change, and that a missing signature is reported.
func TestChangeSigners(t *testing.T) {
	t.Parallel()
	at := ocitest.Serve(t)
	old, oldPublic := newPair(t)
	next, nextPublic := newPair(t)
	r, err := oci.Open(at.Host, noKeys(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	sign := func(key *signature.Key) {
		if _, err := r.Sign(t.Context(), oci.Reference{Host: at.Host, Repository: "acme/csv", Tag: "1.2"}, key); err != nil {
			t.Fatal(err)
		}
	}
	trusting := func(o registry.Options, key string) registry.Options {
		if o.Registry.Trust, err = signature.Open([]signature.Signer{{Key: key}}); err != nil {
			t.Fatal(err)
		}
		return o
	}
	push(t, at, "1.2", "one")
	sign(old)
	var given registry.Options
	s := follow(t, at.Host, "1.2", t.TempDir(), func(o *registry.Options) {
		*o = trusting(*o, oldPublic)
		given = *o
	})
	await(t, s, "one", "")
	if change(t, s, trusting(given, oldPublic)) {
		t.Error("the same key counts as a different one")
	}
	if !change(t, s, trusting(given, nextPublic)) {
		t.Error("another key counts as the same one")
	}
	await(t, s, "one", "its signature is not valid: it was not made with the key "+nextPublic+", or not for this artifact; serving what was pulled before")
	sign(next)
	await(t, s, "one", "")
	push(t, at, "1.2", "two")
	sign(old)
	await(t, s, "one", "it was not made with the key "+nextPublic)
	sign(next)
	await(t, s, "two", "")
	minimum := trusting(given, nextPublic)
	minimum.Registry.Minimum = "1.0.0"
	change(t, s, minimum)
	await(t, s, "two", "it has no version")
}
