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

// room is how much the bucket and its account can still hold. The last part of it is reserved for operators, and closed to tools. NATS accepts a
// deletion only if its marker fits, so in a full bucket nobody could revoke a token.
type room struct {
	came            atomic.Int64 // roughly the bytes that were applied
	copies          atomic.Int64 // of the bucket
	stream, account atomic.Pointer[share]
	told            atomic.Bool // it was logged that tools can't keep more
}

// A share is how much of a limit is used, in bytes.
type share struct {
	has, most int64
	at        int64 // the value of room.came when has was requested
	copies    int64 // how often each byte counts against the limit
}

const (
	// This much of a limit is closed to tools: one part in keptBack, but not less than leastBack bytes. If leastBack is more than half of the
	// limit, half of the limit is closed.
	keptBack, leastBack = 16, 256 << 10
	// overhead is roughly what a message takes beyond its data.
	overhead = 300
	// measureEvery is how often the account's usage is asked for; hurriedly applies while little is left.
	measureEvery, hurriedly = 10 * time.Second, time.Second
)

var errScarce = fmt.Errorf("%w: NATS has little room left for the state, which is reserved for operators: delete keys, or raise the limit of the bucket or its account", state.ErrUnavailable)

func (s *share) scarce(came, more int64) bool {
	if s == nil || s.most <= 0 {
		return false
	}
	return s.has+(came-s.at+more)*s.copies > s.most-max(s.most/keptBack, min(leastBack, s.most/2))
}

// scarce reports whether there is too little room for a tool to keep that many more bytes.
func (r *room) scarce(more int64) bool {
	came := r.came.Load()
	return r.stream.Load().scarce(came, more) || r.account.Load().scarce(came, more)
}

// take counts a message that was applied.
func (r *room) take(bytes int) { r.came.Add(int64(bytes) + overhead) }

// note takes over the stream's usage. at is the value of r.came when the usage was requested.
func (r *room) note(info *jetstream.StreamInfo, at int64, log *slog.Logger) {
	r.copies.Store(int64(max(info.Config.Replicas, 1)))
	r.stream.Store(&share{has: int64(min(info.State.Bytes, 1<<62)), most: info.Config.MaxBytes, at: at, copies: 1})
	switch scarce := r.scarce(0); {
	case scarce && !r.told.Swap(true):
		log.Warn("NATS has little room left for the state, so tools can't keep more", slog.Any("error", errScarce))
	case !r.scarce(leastBack) && r.told.Swap(false): // by a margin, so that the log does not flap
		log.Info("NATS has room for the state again")
	}
}

// shareOf returns an account's usage. copies is how many copies of the bucket the account has.
func shareOf(info *jetstream.AccountInfo, copies, at int64) *share {
	most := func(n uint64) int64 { return int64(min(n, 1<<62)) }
	if tier, ok := info.Tiers[fmt.Sprintf("R%d", copies)]; ok { // a tier's limit counts each copy only once
		return &share{has: most(tier.Store) / copies, most: tier.Limits.MaxStore, at: at, copies: 1}
	}
	return &share{has: most(info.Store), most: info.Limits.MaxStore, at: at, copies: copies}
}

// measure is the goroutine that asks for the account's usage, if the user may.
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
		var now *share // nil: unknown
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
