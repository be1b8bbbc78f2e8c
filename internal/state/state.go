// Package state defines stores of keys with values that outlive a process.
//
// A [Store] has spaces, and a [Space] has keys, in the order of their bytes. Each write of a key gives it a new version. Versions grow within the
// space and never come back, not even after the key was deleted or the process was restarted. So a caller can read an entry, and later change it only
// if nobody else has. A write that has returned without an error is durable, as far as the store is.
//
// Keys and values may be any bytes: those of a tool were chosen by a stranger.
package state

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// Bounds of every store.
const (
	// MaxKey is the largest length of a key in bytes, 1 KiB. A List or Watch keeps keys in memory, and a store on disk repeats them in its index.
	MaxKey = 1 << 10
	// MaxValue is the largest length of a value in bytes, 1 MiB. A store on disk may copy a value when a neighbouring key is written, and message
	// brokers, on which stores may be built, accept messages of that size.
	MaxValue = 1 << 20
	// MaxPage is the most keys that List returns.
	MaxPage = 1000
	// MaxTTL is the longest time to live of an entry that expires: ten years.
	MaxTTL = 10 * 365 * 24 * time.Hour
	// Overhead is what an entry counts in addition to its key and value, in bytes: roughly what it costs a store.
	Overhead = 64
)

// What a caller can expect of a key, instead of a certain version.
const (
	// Any accepts every version, and a missing key.
	Any int64 = -1
	// Absent expects that there is no such key.
	Absent int64 = 0
)

// These are the errors that callers tell apart with errors.Is. Any other error is the cause of a context that is done.
var (
	// ErrConflict is returned if the version of a key is not the expected one. Nothing was changed.
	ErrConflict = errors.New("the key has changed")
	// ErrQuota is returned if an entry would exceed the quota. Nothing was changed.
	ErrQuota = errors.New("the quota is used up")
	// ErrInvalid is returned for a key, a time to live or an expected version that no store accepts.
	ErrInvalid = errors.New("not valid")
	// ErrTooLarge is returned for a key above MaxKey, a value above MaxValue, or one above the limit given to Get.
	ErrTooLarge = errors.New("too large")
	// ErrUnavailable is returned if the store can't be read or written: its disk is full or damaged, or it is closed. A write may have taken
	// place all the same.
	ErrUnavailable = errors.New("the state is not available")
)

// A Store holds spaces. It is safe for concurrent use.
type Store interface {
	// Space returns the space of that name. The name is not empty, and this program chooses it. A space that was never written to is empty.
	Space(name string) Space
	// Close waits for the writes that are under way, and releases the store's resources. Afterwards all uses of the store fail with ErrUnavailable.
	// Close can be called twice.
	Close() error
}

// A Space is the keys of one owner, with versions of their own. It is safe for concurrent use.
//
// Its methods return the cause of ctx once ctx is done. A write that was under way may then have taken place.
type Space interface {
	// Get returns the entry of a key, and false if there is none. If its value has more than most bytes, the error wraps ErrTooLarge, so that a caller
	// can reserve memory first. No value is above MaxValue.
	Get(ctx context.Context, key string, most int) (Entry, bool, error)
	// Set makes or replaces the entry of a key, and returns its new version. It does so only if the key is as expected: a version, [Any] or [Absent]. It
	// does not keep value.
	Set(ctx context.Context, key string, value []byte, expect int64, o SetOptions) (version uint64, err error)
	// Delete deletes the entry of a key if the key is as expected. It returns whether there was an entry.
	Delete(ctx context.Context, key string, expect int64) (deleted bool, err error)
	// List returns the keys that begin with prefix and come after a key, which need not exist. It returns at most limit of them, or [MaxPage] if
	// limit is not from 1 to MaxPage. It may return fewer. more reports whether there are others.
	List(ctx context.Context, prefix, after string, limit int) (keys []string, more bool, err error)
	// Usage returns what the space holds. Expired entries count as long as they are stored.
	Usage(ctx context.Context) (Usage, error)
	// Watch yields an event for each existing entry, then one with Synced, and then one for each change, until ctx is done or an error was
	// yielded. Of several changes of a key, only the last is sure to be yielded. The event for an expired entry is yielded when the store deletes
	// the entry, which may be later.
	Watch(ctx context.Context, prefix string) iter.Seq2[Event, error]
}

// An Immediate is a space whose Get and List wait no longer than a read from this machine's memory or disk takes. So callers need not prepare
// for a long wait.
type Immediate interface {
	Space
	Immediate()
}

// A Shared is a space that other processes change, too. So what is read may be slightly out of date.
type Shared interface {
	Space
	// Refresh returns once everything that is read from then on is at least as new as the call of Refresh.
	Refresh(ctx context.Context) error
}

// An Entry is the value of a key.
type Entry struct {
	Key string
	// Value belongs to the caller.
	Value []byte
	// Version is never 0, and below 1<<63.
	Version uint64
	// Expires is when the entry ends, to the millisecond; zero means never.
	Expires time.Time
}

// SetOptions are options of Set. With the zero value, an entry never expires, and there is no quota.
type SetOptions struct {
	// TTL is how long the entry is kept, from 1 ms to MaxTTL; 0 means forever.
	TTL time.Duration
	// Quota limits what the space may hold, including the entry. A write that does not make the space larger is never refused.
	Quota Usage
}

// A Usage is what a space holds, or may hold. As a quota, 0 is no limit.
type Usage struct {
	Entries int64
	// Bytes counts keys, values, and Overhead for each entry.
	Bytes int64
}

// An Event is what Watch yields.
type Event struct {
	// Entry is the current entry. If Deleted is set, it has only a key; if Synced is set, it is empty.
	Entry
	// Deleted is set if the key has no entry any more, or had one so briefly that no event showed it.
	Deleted bool
	// Synced is set on the one event between those for the existing keys and those for changes.
	Synced bool
}

// SizeOf returns how many bytes an entry counts.
func SizeOf(key string, value []byte) int64 { return int64(len(key)+len(value)) + Overhead }

// CheckSize returns an error that wraps ErrTooLarge if a value has more bytes than a caller of Get accepts.
func CheckSize(size, most int) error {
	if size > most {
		return fmt.Errorf("the value is %w: it has %d bytes; at most %d are allowed", ErrTooLarge, size, most)
	}
	return nil
}

// CheckKey returns an error if no store accepts a key.
func CheckKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("the key is %w: it is empty", ErrInvalid)
	case len(key) > MaxKey:
		return fmt.Errorf("the key is %w: it has %d bytes; at most %d are allowed", ErrTooLarge, len(key), MaxKey)
	}
	return nil
}

// CheckSet returns an error if no store accepts the arguments of a Set.
func CheckSet(key string, value []byte, expect int64, ttl time.Duration) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	switch {
	case len(value) > MaxValue:
		return fmt.Errorf("the value is %w: it has %d bytes; at most %d are allowed", ErrTooLarge, len(value), MaxValue)
	case ttl < 0 || ttl > 0 && ttl < time.Millisecond || ttl > MaxTTL:
		return fmt.Errorf("the time to live is %w: it is %v; use 0 for no expiry, or 1ms to %v", ErrInvalid, ttl, MaxTTL)
	}
	return CheckExpect(expect)
}

// CheckExpect returns an error if expect is neither a version nor [Any] nor [Absent].
func CheckExpect(expect int64) error {
	if expect < Any {
		return fmt.Errorf("the expected version is %w: it is %d; use %d for any, %d for none, or a version", ErrInvalid, expect, Any, Absent)
	}
	return nil
}

// Conflict returns nil if version is as expected, and an error that wraps ErrConflict otherwise. Version 0 means no entry.
func Conflict(version uint64, expect int64) error {
	switch {
	case expect == Any || uint64(expect) == version:
		return nil
	case expect == Absent:
		return fmt.Errorf("%w: it exists already, at version %d", ErrConflict, version)
	case version == 0:
		return fmt.Errorf("%w: it does not exist, but version %d was expected", ErrConflict, expect)
	}
	return fmt.Errorf("%w: it is at version %d, but %d was expected", ErrConflict, version, expect)
}

// Exceeds returns an error that wraps ErrQuota if a space with the usage before may not grow to the usage after, and nil otherwise.
func (quota Usage) Exceeds(before, after Usage) error {
	switch {
	case quota.Entries > 0 && after.Entries > max(quota.Entries, before.Entries):
		return fmt.Errorf("%w: there would be %d entries; at most %d are allowed", ErrQuota, after.Entries, quota.Entries)
	case quota.Bytes > 0 && after.Bytes > max(quota.Bytes, before.Bytes):
		return fmt.Errorf("%w: there would be %d bytes; at most %d are allowed", ErrQuota, after.Bytes, quota.Bytes)
	}
	return nil
}
