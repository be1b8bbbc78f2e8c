// Package kv keeps bytes under names from one call to the next; nothing else lasts. The tool declares that it needs them ([toolsrv.Needs])
// and the operator grants a quota; the tools of a namespace share their keys.
//
//	entry, found, err := kv.Get(c, "visits")
//	…
//	_, err = kv.Set(c, "visits", value, 0)
//
// What a function has written stays, whatever happens after that. Calls run at the same time: a value that depends on what was there is
// written with [Create] or [Update], which fail if another call was faster, or with [Change], which then tries again. Errors are
// [*toolsrv.Failure], with a common code or "conflict" or "quota".
package kv

import (
	"encoding/binary"
	"iter"
	"time"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
	"github.com/toolsrv/toolsrv/sdk/go/internal/capability"
)

// An Entry is what is under a key.
type Entry struct {
	Value []byte
	// Version changes with each write, and is never 0.
	Version uint64
	// Expires is when the entry goes away, in whole milliseconds, or the zero Time if it stays.
	Expires time.Time
}

// What a write or a removal expects; any other number is a version.
const (
	whatever = -1
	nothing  = 0
)

// Get returns what is under a key, and whether there is anything.
func Get(c *toolsrv.Call, key string) (entry Entry, found bool, err error) {
	answer, err := capability.Get(c, key)
	if err != nil || len(answer) == 0 {
		return Entry{}, false, err
	}
	if len(answer) < 16 {
		return Entry{}, false, capability.Broken("an entry has less than its version and expiry")
	}
	entry = Entry{Value: answer[16:], Version: binary.LittleEndian.Uint64(answer)}
	if at := binary.LittleEndian.Uint64(answer[8:]); at != 0 {
		entry.Expires = time.UnixMilli(int64(at))
	}
	return entry, true, nil
}

// Set puts a value under a key, whether the key exists or not, and returns its version. It goes away after ttl, which counts in whole
// milliseconds; 0 keeps it.
func Set(c *toolsrv.Call, key string, value []byte, ttl time.Duration) (version uint64, err error) {
	return set(c, key, value, ttl, whatever)
}

// Create is [Set], but fails with the code "conflict" if there is anything under the key.
func Create(c *toolsrv.Call, key string, value []byte, ttl time.Duration) (version uint64, err error) {
	return set(c, key, value, ttl, nothing)
}

// Update is [Set], but fails with the code "conflict" if what is under the key does not have this version. Version 0 means that there is
// nothing.
func Update(c *toolsrv.Call, key string, value []byte, ttl time.Duration, version uint64) (next uint64, err error) {
	return set(c, key, value, ttl, int64(version))
}

func set(c *toolsrv.Call, key string, value []byte, ttl time.Duration, expect int64) (uint64, error) {
	var milliseconds int64
	switch {
	case ttl < 0:
		return 0, &toolsrv.Failure{Code: "invalid", Message: "the time to live is " + ttl.String() + ": it is 0 to keep the value, or greater"}
	case ttl > 0:
		milliseconds = max(1, ttl.Milliseconds())
	}
	answer, err := capability.Set(c, key, value, milliseconds, expect)
	if err != nil {
		return 0, err
	}
	if len(answer) != 8 {
		return 0, capability.Broken("a version does not have 8 bytes")
	}
	return binary.LittleEndian.Uint64(answer), nil
}

// attempts is how often [Change] tries before it gives up: if one key has that many writers, waiting does not help.
const attempts = 64

// Change puts under a key what change makes of the entry there, and tries again if another call was faster. found is whether there is an
// entry. An error of change ends it and is returned as it is, and so does a conflict at the 64th attempt.
func Change(c *toolsrv.Call, key string, ttl time.Duration, change func(entry Entry, found bool) (value []byte, err error)) (version uint64, err error) {
	for range attempts {
		entry, found, err := Get(c, key)
		if err != nil {
			return 0, err
		}
		value, err := change(entry, found)
		if err != nil {
			return 0, err
		}
		if version, err = Update(c, key, value, ttl, entry.Version); err == nil {
			return version, nil
		}
		if f, ok := toolsrv.AsType[*toolsrv.Failure](err); !ok || f.Code != "conflict" {
			return 0, err
		}
	}
	return 0, &toolsrv.Failure{Code: "conflict", Message: "too many calls write the key " + key + " at once: try again"}
}

// Delete removes what is under a key, and returns whether there was anything.
func Delete(c *toolsrv.Call, key string) (found bool, err error) {
	return remove(c, key, whatever)
}

// DeleteVersion is [Delete], but fails with the code "conflict" if what is under the key does not have this version.
func DeleteVersion(c *toolsrv.Call, key string, version uint64) (found bool, err error) {
	return remove(c, key, int64(version))
}

func remove(c *toolsrv.Call, key string, expect int64) (bool, error) {
	answer, err := capability.Delete(c, key, expect)
	if err != nil {
		return false, err
	}
	if len(answer) != 1 {
		return false, capability.Broken("a removal does not have 1 byte")
	}
	return answer[0] == 1, nil
}

// List returns keys that begin with prefix and come after a key, in the order of their bytes, limit of them at most, and whether there are
// more. With an empty after, the list begins with the first. The host may return fewer than limit; 0 leaves the number to the host.
func List(c *toolsrv.Call, prefix, after string, limit int) (keys []string, more bool, err error) {
	answer, err := capability.List(c, prefix, after, int32(min(max(limit, 0), 1<<30)))
	if err != nil {
		return nil, false, err
	}
	if len(answer) == 0 {
		return nil, false, capability.Broken("a list is empty")
	}
	more, answer = answer[0] == 1, answer[1:]
	for len(answer) > 0 {
		if len(answer) < 4 || uint64(binary.LittleEndian.Uint32(answer)) > uint64(len(answer)-4) {
			return nil, false, capability.Broken("a list ends within a key")
		}
		end := 4 + int(binary.LittleEndian.Uint32(answer))
		keys = append(keys, string(answer[4:end]))
		answer = answer[end:]
	}
	return keys, more, nil
}

// All returns all keys that begin with prefix, in order. It asks for them as the loop goes on, so it sees some of what is written in the
// meantime. After an error it ends.
func All(c *toolsrv.Call, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		after := ""
		for {
			keys, more, err := List(c, prefix, after, 0)
			if err != nil {
				yield("", err)
				return
			}
			for _, key := range keys {
				if !yield(key, nil) {
					return
				}
				after = key
			}
			if !more {
				return
			}
			if len(keys) == 0 {
				yield("", capability.Broken("a page of keys is empty, and there are more"))
				return
			}
		}
	}
}
