package nats

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolsrv/toolsrv/internal/state"
)

// room is what the bucket and its account can still take. The last of it is not for tools: NATS takes a deletion only where it has room for its marker, so
// without any, nobody could revoke a token.
type room struct {
	came            atomic.Int64 // bytes that were taken up, about
	copies          atomic.Int64 // of the bucket
	stream, account atomic.Pointer[share]
	told            atomic.Bool // the log was told that tools keep nothing more
}

// A share is what something has of what it may have, in bytes.
type share struct {
	has, most int64
	at        int64 // what had come then
	copies    int64 // in which each byte counts
}

const (
	// keptBack is which part of all is not for tools, and leastBack how many bytes at least, unless that is more than a half.
	keptBack, leastBack = 16, 256 << 10
	// overhead is what a message takes besides, about.
	overhead = 300
	// measureEvery is how often the account is asked how much it has, and hurriedly the same if there is little room.
	measureEvery, hurriedly = 10 * time.Second, time.Second
)

var errScarce = fmt.Errorf("%w: NATS has little room left for the state, which is reserved for operators: delete keys, or raise the limit of the bucket or its account", state.ErrUnavailable)

func (s *share) scarce(came, more int64) bool {
	if s == nil || s.most <= 0 {
		return false
	}
	return s.has+(came-s.at+more)*s.copies > s.most-max(s.most/keptBack, min(leastBack, s.most/2))
}

// scarce reports whether a tool can't keep some bytes more.
func (r *room) scarce(more int64) bool {
	came := r.came.Load()
	return r.stream.Load().scarce(came, more) || r.account.Load().scarce(came, more)
}

// take counts a message that was taken up.
func (r *room) take(bytes int) { r.came.Add(int64(bytes) + overhead) }

// note takes up what the stream has, which was asked for when some bytes had come.
func (r *room) note(info *jetstream.StreamInfo, at int64, log *slog.Logger) {
	r.copies.Store(int64(max(info.Config.Replicas, 1)))
	r.stream.Store(&share{has: int64(min(info.State.Bytes, 1<<62)), most: info.Config.MaxBytes, at: at, copies: 1})
	switch scarce := r.scarce(0); {
	case scarce && !r.told.Swap(true):
		log.Warn("NATS has little room left for the state, so tools can't keep more", slog.Any("error", errScarce))
	case !r.scarce(leastBack) && r.told.Swap(false): // and not just about
		log.Info("NATS has room for the state again")
	}
}

// shareOf returns what an account has, in which the bucket has some copies.
func shareOf(info *jetstream.AccountInfo, copies, at int64) *share {
	most := func(n uint64) int64 { return int64(min(n, 1<<62)) }
	if tier, ok := info.Tiers[fmt.Sprintf("R%d", copies)]; ok { // which counts one of the copies
		return &share{has: most(tier.Store) / copies, most: tier.Limits.MaxStore, at: at, copies: 1}
	}
	return &share{has: most(info.Store), most: info.Limits.MaxStore, at: at, copies: copies}
}

// measure is the goroutine that asks how much the account has, where the user may.
func (r *room) measure(s *Store) {
	select {
	case <-s.ready:
	case <-s.ctx.Done():
		return
	}
	for s.Broken() == nil {
		ctx, cancel := context.WithTimeout(s.ctx, askLimit)
		at := r.came.Load()
		info, err := s.js.AccountInfo(ctx)
		cancel()
		var now *share // nil: it is not known
		if err == nil {
			now = shareOf(info, max(r.copies.Load(), 1), at)
		}
		r.account.Store(now)
		pause := measureEvery
		if r.scarce(0) {
			pause = hurriedly
		}
		select {
		case <-s.ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}
