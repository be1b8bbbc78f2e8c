// Package state is keys with values that outlive a process.
//
// A [Store] has spaces, and a [Space] has keys, in the order of their bytes. Each write of a key gives it a new version, which
// grows within the space and never comes back, not even after the key was deleted or the process has started anew. So a caller
// can read an entry, and later change it only if nobody else has. A write that has returned without an error is durable, as far
// as the store is.
//
// Keys and values may be any bytes: of a tool, they are what a stranger has chosen.
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
	// MaxKey is the largest length of a key in bytes, 1 KiB. A key is kept in memory by who lists or watches, and in every page of
	// an index on disk.
	MaxKey = 1 << 10
	// MaxValue is the largest length of a value in bytes, 1 MiB. A store on disk may copy a value when a neighbour of its key is
	// written, and message brokers, which stores may be built on, take messages of that size.
	MaxValue = 1 << 20
	// MaxPage is how many keys List returns at most.
	MaxPage = 1000
	// MaxTTL is how long an entry may be kept that is not kept for ever: ten years.
	MaxTTL = 10 * 365 * 24 * time.Hour
	// Overhead is what an entry counts besides its key and value, in bytes: roughly what it costs a store.
	Overhead = 64
)

// What a caller may expect of a key, beside one version.
const (
	// Any expects nothing.
	Any int64 = -1
	// Absent expects that there is no such key.
	Absent int64 = 0
)

// Errors that callers tell apart with errors.Is. Others are causes of contexts.
var (
	// ErrConflict is returned where a key has another version than expected. Nothing was changed.
	ErrConflict = errors.New("the key has changed")
	// ErrQuota is returned where an entry would exceed the quota. Nothing was changed.
	ErrQuota = errors.New("the quota is used up")
	// ErrInvalid is returned for a key, a time to live or an expectation that no store takes.
	ErrInvalid = errors.New("not valid")
	// ErrTooLarge is returned for a key above MaxKey, or a value above MaxValue or what Get was told.
	ErrTooLarge = errors.New("too large")
	// ErrUnavailable is returned where the store can't be read or written: its disk is full or damaged, or it is closed. A write
	// may have taken place all the same.
	ErrUnavailable = errors.New("the state is not available")
)

// A Store holds spaces. It is safe for concurrent use.
type Store interface {
	// Space returns the space of that name, which is not empty and chosen by this program. A space that was never written to is
	// empty.
	Space(name string) Space
	// Close waits for the writes that are under way, and frees what the store has. All uses of it fail afterwards with ErrUnavailable.
	// Close can be called twice.
	Close() error
}

// A Space is the keys of one owner, with versions of their own. It is safe for concurrent use.
//
// Its methods return the cause of ctx once that is done. A write that was under way may then have taken place.
type Space interface {
	// Get returns the entry of a key, and false if there is none. A value above most bytes is an error about ErrTooLarge, so that
	// a caller can make room for it first: no value is above MaxValue.
	Get(ctx context.Context, key string, most int) (Entry, bool, error)
	// Set makes or replaces the entry of a key, and returns its version, if the key is as expected: a version, [Any] or [Absent].
	// It does not keep value.
	Set(ctx context.Context, key string, value []byte, expect int64, o SetOptions) (version uint64, err error)
	// Delete deletes the entry of a key, and returns whether there was one, if the key is as expected.
	Delete(ctx context.Context, key string, expect int64) (deleted bool, err error)
	// List returns the keys that begin with prefix and come after a key, which need not exist. It returns at most limit of them, or
	// [MaxPage] if limit is not in 1 to MaxPage, and sometimes fewer. more reports whether there are others.
	List(ctx context.Context, prefix, after string, limit int) (keys []string, more bool, err error)
	// Usage returns what the space holds, with expired entries that are still stored.
	Usage(ctx context.Context) (Usage, error)
	// Watch yields an event for each entry that there is, then one with Synced, and then one for each change, until ctx is done or
	// an error was yielded. Of several changes of a key, only the last may be yielded; that one always is. That an entry has expired
	// is yielded when the store deletes it, which may be later.
	Watch(ctx context.Context, prefix string) iter.Seq2[Event, error]
}

// An Immediate is a space whose Get and List never wait for longer than it takes to read from this machine's memory or disk, so that
// callers need no preparations for waiting.
type Immediate interface {
	Space
	Immediate()
}

// A Shared is a space that other processes change, too, so that what is read may be old for a moment.
type Shared interface {
	Space
	// Refresh returns once what is read is not older than the call.
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

// SetOptions are options of Set. With the zero value, an entry is kept for ever, and there is no quota.
type SetOptions struct {
	// TTL is how long the entry is kept, from 1 ms to MaxTTL; 0 means for ever.
	TTL time.Duration
	// Quota is what the space may hold with the entry. A write that does not make the space larger is never refused.
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
	// Entry is the entry as it is now. Where Deleted is set it has only a key; where Synced is set it has nothing.
	Entry
	// Deleted is set if the key has no entry any more, or had one only briefly, without an event.
	Deleted bool
	// Synced is set on the one event between those for the existing keys and those for changes.
	Synced bool
}

// SizeOf returns what an entry counts.
func SizeOf(key string, value []byte) int64 { return int64(len(key)+len(value)) + Overhead }

// CheckSize returns an error about ErrTooLarge where a value has more bytes than a caller of Get takes.
func CheckSize(size, most int) error {
	if size > most {
		return fmt.Errorf("the value is %w: it has %d bytes; at most %d are allowed", ErrTooLarge, size, most)
	}
	return nil
}

// CheckKey returns an error where no store takes a key.
func CheckKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("the key is %w: it is empty", ErrInvalid)
	case len(key) > MaxKey:
		return fmt.Errorf("the key is %w: it has %d bytes; at most %d are allowed", ErrTooLarge, len(key), MaxKey)
	}
	return nil
}

// CheckSet returns an error where no store takes what Set was given.
func CheckSet(key string, value []byte, expect int64, ttl time.Duration) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	switch {
	case len(value) > MaxValue:
		return fmt.Errorf("the value is %w: it has %d bytes; at most %d are allowed", ErrTooLarge, len(value), MaxValue)
	case ttl < 0 || ttl > 0 && ttl < time.Millisecond || ttl > MaxTTL:
		return fmt.Errorf("the time to live is %w: it is %v; use 0 for ever, or 1ms to %v", ErrInvalid, ttl, MaxTTL)
	}
	return CheckExpect(expect)
}

// CheckExpect returns an error where an expectation is none.
func CheckExpect(expect int64) error {
	if expect < Any {
		return fmt.Errorf("the expected version is %w: it is %d; use %d for any, %d for none, or a version", ErrInvalid, expect, Any, Absent)
	}
	return nil
}

// Conflict returns nil if version, 0 for no entry, is as expected, and an error about ErrConflict otherwise.
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

// Exceeds returns an error about ErrQuota where a space that held before may not hold after, and nil otherwise.
func (quota Usage) Exceeds(before, after Usage) error {
	switch {
	case quota.Entries > 0 && after.Entries > max(quota.Entries, before.Entries):
		return fmt.Errorf("%w: there would be %d entries; at most %d are allowed", ErrQuota, after.Entries, quota.Entries)
	case quota.Bytes > 0 && after.Bytes > max(quota.Bytes, before.Bytes):
		return fmt.Errorf("%w: there would be %d bytes; at most %d are allowed", ErrQuota, after.Bytes, quota.Bytes)
	}
	return nil
}
