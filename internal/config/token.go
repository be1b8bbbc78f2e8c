package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/toolsrv/toolsrv/internal/credential"
	"github.com/toolsrv/toolsrv/internal/keys"
	"github.com/toolsrv/toolsrv/internal/scope"
	"github.com/toolsrv/toolsrv/wasmtools/config/key"
)

// maxDeclared is how many tables [[auth.token]] are allowed.
const maxDeclared = 1000

// tokens reads the tables [[auth.token]]. Messages never quote a value, since any of them may be a token in the wrong place.
func (d *document) tokens(to *[]Token, directory string) keys.Reader {
	names, digests := map[string]bool{}, map[[sha256.Size]byte]bool{}
	return tableList(d, "auth.token", maxDeclared, "make them with `toolsrv tokens add`", to, func(place string, values map[string]any, t *Token) {
		d.readTable(place, values, rateKeys(key.Table{
			// 1 to 64 of the characters `A-Z a-z 0-9 . _ @ -`, not `token-` and a number | the name of the caller. No two tables may have the same
			"name": keys.Word(&t.Name, `a string such as "ci"`, func(s string) (string, error) { return s, credential.CheckName(s) }),
			// 64 hexadecimal digits | what `printf %s TOKEN \| sha256sum` prints. The token must be long and random
			"sha256": digestOf(&t.SHA256, "printf %s TOKEN | sha256sum"),
			// a file with the token, in place of `sha256`
			"file": keys.Word(&t.File, "a path", keys.Path(directory, true)),
			// patterns, as in [overrides](#limits-for-some-tools), and roles | which tools it may call; `"*"` is all of them. `admin`, `admin:read` and
			// `metrics` are roles: `"*"` has none of them. Without scopes it may do nothing
			"scopes": keys.Words(&t.Scopes, func(s string) (string, error) { return s, scope.Check(s) }),
			// a date, with or without a time and its zone | when it expires; without a time, at 00:00 UTC. Never, if it is missing
			"expires": moment(&t.Expires),
			// ranges of addresses | where it is accepted from, by the client's address according to [trusted proxies](#proxies). If it is missing,
			// everywhere
			"networks": keys.List(`a list such as ["10.0.0.0/8"]`, keys.Prefix(&t.Networks)),
		}, &t.Rate))
		checkRate(d, place, &t.Rate)
		_, hashed := values["sha256"]
		_, filed := values["file"]
		switch {
		case values["name"] == nil:
			d.fail(place, errors.New(`name is missing: name the token's owner, as in name = "ci"`))
		case t.Name != "" && names[t.Name]:
			d.fail(join(place, "name"), errors.New("is the name of two tokens: give each its own, because the log tells them apart by name"))
		case hashed == filed:
			d.fail(place, errors.New("a token has either sha256, which `printf %s TOKEN | sha256sum` prints, or file, the path of a file with the token"))
		case t.SHA256 != [sha256.Size]byte{} && digests[t.SHA256]:
			d.fail(join(place, "sha256"), errors.New("is the digest of two tokens: each principal needs its own token"))
		}
		d.checkScopes(place, t.Scopes)
		names[t.Name], digests[t.SHA256] = true, true
	})
}

// unnamed reads auth.tokens. Its error helps users who have written [[auth.tokens]] but mean [[auth.token]].
func unnamed(read keys.Reader) keys.Reader {
	return func(value any) error {
		if list, ok := value.([]any); ok && len(list) > 0 {
			if _, isTable := list[0].(map[string]any); isTable {
				return errors.New(`these are tokens without names, such as ["one", "two"]: write [[auth.token]] for a token with a name`)
			}
		}
		return read(value)
	}
}

// checkScopes checks whether scopes, each of which is valid by itself, are also valid together.
func (d *document) checkScopes(place string, scopes []string) {
	if len(scopes) > scope.Max {
		d.fail(join(place, "scopes"), fmt.Errorf("there are %d scopes; at most %d are allowed: %s", len(scopes), scope.Max, fewPatterns))
		return
	}
	for _, one := range scopes {
		if scope.Check(one) != nil {
			return // the invalid scope has been reported already
		}
	}
	if _, err := scope.Parse(scopes); err != nil {
		d.fail(join(place, "scopes"), err)
	}
}

// digestOf reads a SHA-256 in hexadecimal digits. printer is a command that prints it.
func digestOf(to *[sha256.Size]byte, printer string) keys.Reader {
	want := "is not a SHA-256, which has 64 of the digits 0-9 a-f: `" + printer + "` prints it"
	return func(value any) error {
		text, ok := value.(string)
		if !ok {
			return keys.WrongType(value, "a string")
		}
		if len(text) != hex.EncodedLen(len(to)) {
			return errors.New(want)
		}
		if _, err := hex.Decode(to[:], []byte(text)); err != nil {
			return errors.New(want)
		}
		return nil
	}
}

// moment reads a date with or without a time. A date alone means 00:00 UTC.
func moment(to *time.Time) keys.Reader {
	return func(value any) error {
		switch at := value.(type) {
		case time.Time:
			*to = at
		case toml.LocalDate:
			*to = at.AsTime(time.UTC)
		default:
			return errors.New("must be a date such as 2027-01-31, or one with a time and its zone such as 2027-01-31T18:00:00Z")
		}
		return nil
	}
}

// readTokens reads the files of declared tokens.
func (d *document) readTokens(a *Auth) error {
	tokens := map[[sha256.Size]byte]bool{}
	for _, token := range a.Tokens {
		tokens[sha256.Sum256([]byte(token))] = true
	}
	digests := map[[sha256.Size]byte]bool{}
	for i := range a.Declared {
		t, place := &a.Declared[i], index("auth.token", i)
		if t.File != "" {
			place = join(place, "file")
			found, err := credential.ReadFile(t.File)
			if err == nil && len(found) != 1 {
				err = fmt.Errorf("the file has %d tokens: each table needs its own file, with one token", len(found))
			}
			if err != nil {
				return fmt.Errorf("%s: %s: %w", d.place(d.offsets[place]), place, keys.Pathless(err))
			}
			t.SHA256 = sha256.Sum256([]byte(found[0]))
		}
		switch {
		case tokens[t.SHA256]:
			return fmt.Errorf("%s: %s: the token is also in auth.tokens or auth.tokens_file, whose tokens may call every tool: remove it there", d.place(d.offsets[place]), place)
		case digests[t.SHA256]:
			return fmt.Errorf("%s: %s: another table has the same token: each principal needs its own", d.place(d.offsets[place]), place)
		}
		digests[t.SHA256] = true
	}
	return nil
}
