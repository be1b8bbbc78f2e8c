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

// A place is a file of a source as names in the folder have it: a hash of the source's ID, and the file's name, or a hash of a long one.
type place string

const (
	sourceDigits = 16
	maxName      = 150 // bytes: with what stands before it, it fits into the name of a file
	hashed       = "="
)

// placeOf returns where a file's versions are.
func placeOf(f File) place {
	name := escape(f.Name)
	if len(name) > maxName {
		name = hashed + hash(f.Name, 2*sha256.Size)
	}
	return place(hash(f.Source, sourceDigits) + "-" + name)
}

// fileIn returns the name of the file, if the source with an ID has it and the name is known.
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

// kept are the names of versions: the time in milliseconds, the digest and the place. It is made when it is first used, since every command starts this.
var kept = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([0-9a-f]{12})-([0-9a-f]{64})-([0-9a-f]{16}-(?:[A-Za-z0-9._%-]+|=[0-9a-f]{64}))$`)
})

func nameOf(at place, v Version) string {
	return fmt.Sprintf("%012x-%s-%s", v.Since.UnixMilli(), v.Digest, at)
}

// parse returns what a name says, without the size.
func parse(name string) (at place, v Version, ok bool) {
	found := kept().FindStringSubmatch(name)
	if found == nil {
		return "", Version{}, false
	}
	ms, err := strconv.ParseInt(found[1], 16, 64)
	return place(found[3]), Version{Digest: found[2], Since: time.UnixMilli(ms).UTC(), name: name}, err == nil
}

const temporary = ".new-"

// temporaryOf returns the name of a version while it is written, which is no longer than its own.
func temporaryOf(name string) string { return temporary + hash(name, 2*sha256.Size) }

func isTemporary(name string) bool { return strings.HasPrefix(name, temporary) }

// escape returns a name with characters that every file system takes.
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
