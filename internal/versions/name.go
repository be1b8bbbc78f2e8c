package versions

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A place identifies a file of a source in the names of versions: a hash of the source's ID, and the file's name, or a hash of it if the name is
// long.
type place string

const (
	sourceDigits = 16
	maxName      = 150 // bytes: with the prefix it still fits into a file name
	hashed       = "="
)

// placeOf returns the place of a file.
func placeOf(f File) place {
	name := escape(f.Name)
	if len(name) > maxName {
		name = hashed + hash(f.Name, 2*sha256.Size)
	}
	return place(hash(f.Source, sourceDigits) + "-" + name)
}

// fileIn returns the name of the file, if it belongs to the source with this ID and the name is known.
func (p place) fileIn(source string) (name string, ok bool) {
	name, ok = strings.CutPrefix(string(p), hash(source, sourceDigits)+"-")
	if !ok || strings.HasPrefix(name, hashed) {
		return "", false
	}
	name, err := url.PathUnescape(name)
	return name, err == nil
}

func hash(s string, digits int) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])[:digits]
}

// kept matches the names of versions: the time in milliseconds, the digest and the place. It is compiled when it is first used, since every command
// would otherwise pay for it.
var kept = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([0-9a-f]{12})-([0-9a-f]{64})-([0-9a-f]{16}-(?:[A-Za-z0-9._%-]+|=[0-9a-f]{64}))$`)
})

func nameOf(at place, v Version) string {
	return fmt.Sprintf("%012x-%s-%s", v.Since.UnixMilli(), v.Digest, at)
}

// parse returns the version that a name describes, without its size.
func parse(name string) (at place, v Version, ok bool) {
	found := kept().FindStringSubmatch(name)
	if found == nil {
		return "", Version{}, false
	}
	ms, err := strconv.ParseInt(found[1], 16, 64)
	return place(found[3]), Version{Digest: found[2], Since: time.UnixMilli(ms).UTC(), name: name}, err == nil
}

const temporary = ".new-"

// temporaryOf returns the name of a version while it is being written, which is no longer than the final one.
func temporaryOf(name string) string { return temporary + hash(name, 2*sha256.Size) }

func isTemporary(name string) bool { return strings.HasPrefix(name, temporary) }

// escape returns a name in characters that every file system accepts.
func escape(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02x", c)
	}
	return b.String()
}
