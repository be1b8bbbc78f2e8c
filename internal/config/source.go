package config

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/keys"
	"github.com/toolsrv/toolsrv/internal/lockfile"
	"github.com/toolsrv/toolsrv/internal/naming"
	"github.com/toolsrv/toolsrv/internal/oci"
	"github.com/toolsrv/toolsrv/internal/signature"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools/config/key"
)

const (
	maxSources    = 100
	maxNamespaces = 100 // namespaces of a source
	maxMirrors    = 5   // mirrors of a source
)

// sourceTables reads the tables [[source]].
func sourceTables(d *document, to *[]Source, directory string) keys.Reader {
	return tableList(d, "source", maxSources, "put the folders into one", to, func(place string, values map[string]any, s *Source) {
		d.readTable(place, values, key.Table{
			// up to 64 of the characters `A-Z a-z 0-9 _ -` | the name of the source in lists, metrics, and `put --directory`. Without it, the
			// directory is used
			"name": keys.Word(&s.Name, `a string such as "acme"`, keys.Name),
			// folder of the files
			"directory": keys.Word(&s.Directory, "a path", keys.Path(directory, true)),
			// serve [scripts](#scripts) of the directory, too
			"scripts": keys.Boolean(&s.Scripts),
			// namespaces | where its files may have tools: in each of these and below. `""` is for tools without a namespace. If one source has
			// `["pay"]` and another one `["pay/sub"]`, the nearer one decides. Two sources name the same one only if both are repositories beside
			// each other, such as `ghcr.io/acme/csv` and `ghcr.io/acme/web`. Without the key, they may be in every namespace that no other source
			// names
			"namespaces": namespaces(d, join(place, "namespaces"), &s.Namespaces),
			// a namespace | prefix for the namespace of each file
			"prefix": keys.Word(&s.Prefix, `a namespace such as "acme"`, namespace),

			// 1 to 32 of the characters `A-Z a-z 0-9 _ -` | an object bucket in the [NATS](#tools-in-a-bucket) that has the state
			"bucket": keys.Word(&s.Bucket, `a name such as "tools"`, bucket),
			// a repository | the registry and the name in it, without a tag
			"oci": keys.Word(&s.OCI, `a repository such as "ghcr.io/acme/csv"`, repository),
			// repositories | up to five with copies, such as `["mirror.example.com/ghcr/acme/tools/csv"]`: [asked first](#mirrors)
			"mirrors": mirrors(d, join(place, "mirrors"), &s.Mirrors),
			// a tag, a range, a digest | what is served: `"1.2.0"`; `"~1.2"` is the newest version 1.2 that has a tag of three numbers;
			// `"sha256:…"` is what [push](commands.md#push-pull-and-search) has printed
			"tag": keys.Word(&s.Tag, `a tag such as "1.2.0", a range such as "~1.2", or a digest`, tag),
			// file in the form of docker's `config.json`. Without it, docker's own in the home of the server's user, and podman's `auth.json`; both
			// may name helpers. Those of a repository come before those of its host. Logging in again needs no restart
			"credentials": keys.Word(&s.Credentials, "a path", keys.Path(directory, true)),
			// PEM file of authorities that are trusted in addition to the system's
			"ca": keys.Word(&s.CA, "a path", keys.Path(directory, true)),
			// use HTTP, as for a registry on loopback even without this
			"plain_http": keys.Boolean(&s.PlainHTTP),
			// tables | who must have [signed](#signed-tools) it. Without this key, no signature is needed
			"signer": signers(d, place, &s.Signers, directory),
			// a version | the lowest version to serve, such as `"1.2.0"`
			"minimum": keys.Word(&s.Minimum, `a version such as "1.2.0"`, version),
		})
		checkKind(d, place, values)
		if i := slices.Index(s.Mirrors, s.OCI); i >= 0 {
			d.fail(index(join(place, "mirrors"), i), errors.New("is the repository itself, which is asked anyway when no mirror can help: leave it out"))
		}
		if s.Prefix != "" && s.Namespaces != nil && !slices.ContainsFunc(s.Namespaces, func(n string) bool { return overlap(n, s.Prefix) }) {
			d.fail(join(place, "prefix"), errors.New("is in none of its namespaces, so nothing would be served: add it there, or leave one of the two out"))
		}
	})
}

// checkKind checks that a source is of exactly one kind, and has only keys of that kind.
func checkKind(d *document, place string, values map[string]any) {
	_, directory := values["directory"]
	_, oci := values["oci"]
	_, bucket := values["bucket"]
	switch {
	case directory && oci:
		d.fail(join(place, "oci"), errors.New("can't be combined with directory: make two sources"))
	case bucket && (directory || oci):
		d.fail(join(place, "bucket"), errors.New("can't be combined with directory or oci: make two sources"))
	case oci:
		if _, ok := values["tag"]; !ok {
			d.fail(place, errors.New(`tag is missing: say what to serve from the repository, as in tag = "1.2.0", tag = "~1.2", or a digest`))
		}
		if _, ok := values["scripts"]; ok {
			d.fail(join(place, "scripts"), errors.New("is for directories: a registry has only modules, including those made from scripts"))
		}
		_, signed := values["signer"]
		if _, ok := values["minimum"]; ok && !signed {
			d.fail(join(place, "minimum"), errors.New("needs a signer: without a signature, whoever replays an old version can also change its number"))
		}
		if tag, _ := values["tag"].(string); signed && strings.Contains(tag, ":") {
			d.fail(join(place, "signer"), errors.New("makes no sense with a digest, which alone decides what is served: leave one of the two out"))
		}
	default:
		for _, key := range []string{"tag", "mirrors", "credentials", "ca", "plain_http", "signer", "minimum"} {
			if _, ok := values[key]; ok {
				d.fail(join(place, key), errors.New(`is for registries: name a repository, as in oci = "ghcr.io/acme/csv"`))
			}
		}
		if !directory && !bucket {
			d.fail(place, errors.New(`directory, oci or bucket is missing: name the folder that holds the tools, as in directory = "/srv/acme", a repository, as in oci = "ghcr.io/acme/csv", or a bucket, as in bucket = "tools"`))
		}
	}
}

// bucketNames matches the names that NATS accepts after the prefix of the state.
var bucketNames = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// bucket reads the name of an object bucket.
func bucket(s string) (string, error) {
	if !bucketNames.MatchString(s) {
		return "", errors.New(`must be 1 to 32 of the characters A-Z a-z 0-9 _ -, as in "tools"`)
	}
	return s, nil
}

const maxSigners = 20 // signers of a source

// signers reads the tables [[source.signer]] of a source.
func signers(d *document, source string, to *[]Signer, directory string) keys.Reader {
	word := func(s string) (string, error) {
		if s == "" {
			return "", errors.New("must not be empty")
		}
		return s, nil
	}
	read := tableList(d, join(source, "signer"), maxSigners, "leave out those you don't need", to, func(place string, values map[string]any, s *Signer) {
		d.readTable(place, values, key.Table{
			// PEM file with a public key: ECDSA with P-256, Ed25519, or RSA
			"key": keys.Word(&s.Key, "a path", keys.Path(directory, true)),
			// text | who vouches for the identity
			"issuer": keys.Word(&s.Issuer, `an address such as "https://token.actions.githubusercontent.com"`, word),
			// text | the identity, exactly. A `*` at the end, behind an owner as in `https://github.com/acme/*` or behind an `@`, stands for all that
			// follows
			"subject": keys.Word(&s.Subject, `an identity such as "ann@example.com"`, subject),
			// the authorities that certify identities, in the form of Sigstore's `trusted_root.json`. A signature needs an entry in its log or,
			// if it has no log, a time that its timestamp authority has signed. No network is used
			"root": keys.Word(&s.Root, "a path", keys.Path(directory, true)),
		})
		for name := range values { // an unknown key gets its own error
			if value, ok := values[name].(string); !ok || value == "" {
				return
			}
		}
		if err := signature.Signer(*s).Check(); err != nil && (s.Subject != "" || values["subject"] == nil) {
			d.fail(place, err)
		}
	})
	return func(value any) error {
		if list, ok := value.([]any); ok && len(list) == 0 {
			return errors.New("is empty, so nothing could be served: name a signer, or leave the key out")
		}
		return read(value)
	}
}

func subject(s string) (string, error) {
	if s == "" {
		return "", errors.New("must not be empty")
	}
	return s, signature.CheckSubject(s)
}

func version(s string) (string, error) { return s, oci.CheckVersion(s) }

// readLock sets the locked digests of sources. It reads the lock file only if a source is a registry.
func (c *Config) readLock(path string) error {
	if !slices.ContainsFunc(c.Sources, func(s Source) bool { return s.OCI != "" }) {
		return nil
	}
	lock, err := lockfile.Read(path)
	if err != nil {
		return err
	}
	for i := range c.Sources {
		if s := &c.Sources[i]; s.OCI != "" && !strings.Contains(s.Tag, ":") {
			s.Locked = lock.Digest(s.OCI, s.Tag)
		}
	}
	return nil
}

// repository reads the name of a repository, without a tag.
func repository(s string) (string, error) {
	ref, err := oci.ParseReference(s)
	if err != nil {
		return "", errors.New(`is not a repository: name one such as "ghcr.io/acme/csv", in lower case`)
	}
	if ref.Tag != "" || ref.Digest != "" {
		return "", errors.New("has a tag or a digest: write that with the key tag")
	}
	return ref.String(), nil
}

// mirrors reads the mirrors of a repository, and reports each wrong one.
func mirrors(d *document, place string, to *[]string) keys.Reader {
	read := keys.Word(new(string), "a string", func(s string) (string, error) {
		name, err := repository(s)
		switch {
		case err != nil:
			return "", err
		case slices.Contains(*to, name):
			return "", errors.New("is listed twice: leave one out")
		}
		*to = append(*to, name)
		return name, nil
	})
	return list(d, place, "mirrors", maxMirrors, `is empty: name a repository such as "mirror.example.com/acme/csv"`, "leave out the last ones", read)
}

// tag reads a tag, a range of versions or a digest.
func tag(s string) (string, error) {
	switch {
	case strings.HasPrefix(s, "~"):
		_, err := oci.ParseRange(s)
		return s, err
	case strings.Contains(s, ":"):
		return s, oci.CheckDigest(s)
	}
	return s, oci.CheckTag(s)
}

// namespaces reads the namespaces of a source, and reports each wrong one.
func namespaces(d *document, place string, to *[]string) keys.Reader {
	read := keys.Word(new(string), "a string", func(s string) (string, error) {
		if s != "" { // "" is for tools without a namespace
			if _, err := namespace(s); err != nil {
				return "", err
			}
		}
		*to = append(*to, s)
		return s, nil
	})
	return list(d, place, "namespaces", maxNamespaces, `is empty, so nothing would be served: name a namespace such as "acme"`, "name one that holds several", read)
}

// list reads a list of 1 to most elements. It reads each element with read, and reports each wrong one.
func list(d *document, place, what string, most int, empty, fewer string, read keys.Reader) keys.Reader {
	return func(value any) error {
		list, ok := value.([]any)
		switch n := len(list); {
		case !ok:
			return keys.WrongType(value, `a list such as ["one", "two"]`)
		case n == 0:
			return fmt.Errorf("%s, or leave the key out", empty)
		case n > most:
			return fmt.Errorf("there are %d %s; at most %d are allowed: %s", n, what, most, fewer)
		}
		for i, one := range list {
			if err := read(one); err != nil {
				d.fail(place, &keys.ElementError{Index: i, Err: err})
			}
		}
		return nil
	}
}

func namespace(s string) (string, error) {
	if s == "" {
		return "", errors.New(`must not be empty: name a namespace such as "acme"`)
	}
	if above, ok := strings.CutSuffix(s, "/*"); ok && naming.CheckNamespace(above) == nil {
		return "", fmt.Errorf("%q is a pattern: write just the namespace, which includes those below it", text.Short(s))
	}
	return s, naming.CheckNamespace(s)
}

// overlap reports whether two namespaces are the same, or one is below the other.
func overlap(a, b string) bool {
	return a == b || a != "" && strings.HasPrefix(b, a+"/") || strings.HasPrefix(a, b+"/")
}

// checkNamespaces refuses a namespace that two sources name, since neither would have it for itself. Repositories beside each other in a registry may
// share one: each has one module, and whoever may push to one of them most likely may push to the others.
func checkNamespaces(d *document, sources []Source) {
	claims := map[string][]int{} // which sources name a namespace
	for i, s := range sources {
		for n, namespace := range s.Namespaces {
			for _, first := range claims[namespace] {
				other := sources[first]
				if first == i || s.OCI != "" && other.OCI != "" && path.Dir(s.OCI) == path.Dir(other.OCI) {
					continue
				}
				what := fmt.Sprintf("the namespace %q", namespace)
				if namespace == "" {
					what = "the empty namespace"
				}
				d.fail(index(join(index("source", i), "namespaces"), n), fmt.Errorf("%s is also among %s (%s), but a namespace belongs to one source: remove it from one of the two, or name others below it",
					what, join(index("source", first), "namespaces"), called(other)))
				break
			}
			claims[namespace] = append(claims[namespace], i)
		}
	}
}

// called returns the name of a source for messages.
func called(s Source) string {
	if s.Bucket != "" {
		return cmp.Or(s.Name, "the bucket "+s.Bucket)
	}
	return cmp.Or(s.Name, s.Directory, s.OCI)
}

// checkSources checks that no two sources share what must be unique.
func checkSources(d *document, c *Config) {
	checkNamespaces(d, c.Sources)
	directories, names, artifacts, buckets := map[string]bool{c.Tools.Directory: true}, map[string]bool{}, map[[2]string]bool{}, map[string]bool{}
	for i, s := range c.Sources {
		if s.Directory != "" && directories[s.Directory] {
			d.fail(join(index("source", i), "directory"), errors.New("is listed twice, but each file is served once: leave one out"))
		}
		if s.Name != "" && names[s.Name] {
			d.fail(join(index("source", i), "name"), errors.New("is the name of two sources: give each its own"))
		}
		if s.OCI != "" && artifacts[[2]string{s.OCI, s.Tag}] {
			d.fail(join(index("source", i), "oci"), errors.New("is listed twice with this tag: leave one out"))
		}
		switch {
		case s.Bucket != "" && buckets[s.Bucket]:
			d.fail(join(index("source", i), "bucket"), errors.New("is listed twice: leave one out"))
		case s.Bucket != "" && c.State.URL == "" && !d.refused("state.url"):
			d.fail(join(index("source", i), "bucket"), errors.New("is in the NATS that has the state: also set url in [state]"))
		}
		buckets[s.Bucket] = true
		directories[s.Directory], names[s.Name], artifacts[[2]string{s.OCI, s.Tag}] = true, true, true
	}
}
