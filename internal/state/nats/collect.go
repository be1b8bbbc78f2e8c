package nats

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// maxBucket is how many bytes a bucket of objects may have that says nothing else itself.
	maxBucket = 4 << 30
	// mostCollected is how many objects are removed at a time.
	mostCollected = 10_000
	// mostObjects is how many objects are looked at: all files with all their versions are fewer.
	mostObjects = 2_000_000
	// maxAhead is how many bytes may have come that were not looked at yet.
	maxAhead = 4 << 20
	// collectLimit is how long that may take.
	collectLimit = 5 * time.Minute
	collectTries = 3
)

// Room returns how many bytes can still be put, and how many the bucket may have.
func (o *Objects) Room(ctx context.Context) (left, most int64, err error) {
	ctx, cancel := within(ctx, askLimit)
	defer cancel()
	if err := o.store.writable(); err != nil {
		return 0, 0, err
	}
	began := time.Now()
	stream, err := o.store.js.Stream(ctx, o.stream())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return maxBucket, maxBucket, nil
	}
	if err != nil {
		return 0, 0, causeOf(ctx, o.store.rights.why(began, err))
	}
	info := stream.CachedInfo()
	if most = info.Config.MaxBytes; most <= 0 {
		most = maxBucket
	}
	return most - int64(info.State.Bytes), most, nil
}

// Collect removes objects that keep does not want and that were put longer ago than age, and chunks of that age that belong to none.
func (o *Objects) Collect(ctx context.Context, age time.Duration, keep func(object string) bool) (removed int, err error) {
	if err := o.store.writable(); err != nil {
		return 0, err
	}
	ctx, cancel := within(ctx, collectLimit)
	defer cancel()
	ctx, done := o.store.rights.asking(ctx)
	defer func() { err = done(err) }()
	for range collectTries { // a consumer may be silent
		if removed, err = o.collect(ctx, age, keep); err == nil || ctx.Err() != nil {
			break
		}
	}
	return removed, err
}

func (o *Objects) collect(ctx context.Context, age time.Duration, keep func(object string) bool) (removed int, err error) {
	stream, err := o.store.js.Stream(ctx, o.stream())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, causeOf(ctx, err)
	}
	before := stream.CachedInfo().TimeStamp.Add(-age) // by the servers' clock, as the times of messages are
	// What a node says that is behind is not all: it may lack what says that chunks are used, which another node has. The leader knows how far that goes.
	last, err := o.store.askOf(ctx, o.stream(), wanted{Last: o.about(">")})
	if err != nil && !errors.Is(err, errGone) {
		return 0, causeOf(ctx, err)
	}
	used := map[string]bool{} // chunks
	var old []unused
	var tooMany error
	// Only once all are known, chunks can be told that belong to none. What is put meanwhile is younger.
	err = o.each(ctx, stream, o.about(">"), last.Sequence, false, func(m jetstream.Msg, meta *jetstream.MsgMetadata) {
		object, bad := base64.URLEncoding.DecodeString(strings.TrimPrefix(m.Subject(), o.about("")))
		var info objectInfo
		if len(m.Data()) > maxInfo || json.Unmarshal(m.Data(), &info) != nil || info.Deleted {
			bad = ErrObject
		}
		if bad == nil && keep(string(object)) || !meta.Timestamp.Before(before) {
			switch {
			case !nuids.MatchString(info.NUID): // which is none of a chunk
			case len(used) == mostObjects:
				tooMany = fmt.Errorf("it has more than %d objects, most of which are not toolsrv's: remove those", mostObjects)
			default:
				used[info.NUID] = true
			}
		} else if len(old) < mostCollected {
			old = append(old, unused{m.Subject(), meta.Sequence.Stream})
		}
	})
	if err = cmp.Or(err, tooMany); err == nil {
		removed = len(old)
		err = o.each(ctx, stream, o.chunks(">"), 0, true, func(m jetstream.Msg, meta *jetstream.MsgMetadata) {
			if !used[strings.TrimPrefix(m.Subject(), o.chunks(""))] && meta.Timestamp.Before(before) && len(old) < 2*mostCollected {
				old = append(old, unused{m.Subject(), meta.Sequence.Stream})
			}
		})
	}
	for i := 0; err == nil && i < len(old); i++ { // and not what was put under the subject meanwhile
		err = stream.Purge(ctx, jetstream.WithPurgeSubject(old[i].subject), jetstream.WithPurgeSequence(old[i].sequence+1))
	}
	if err != nil {
		return 0, causeOf(ctx, fmt.Errorf("look for unused objects in the bucket %s: %w", o.name, err))
	}
	return removed, nil
}

// unused is a subject whose messages are not used, up to a sequence.
type unused struct {
	subject  string
	sequence uint64
}

// each calls do with the last message of each subject that a node has, up to a sequence at least, without its data if only heads are wanted. It fails
// unless those were all.
func (o *Objects) each(ctx context.Context, stream jetstream.Stream, subjects string, end uint64, heads bool, do func(m jetstream.Msg, meta *jetstream.MsgMetadata)) error {
	p, err := enter(ctx, o.store, stream, "", jetstream.ConsumerConfig{
		FilterSubject: subjects, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, HeadersOnly: heads, InactiveThreshold: objectLimit,
	}, jetstream.PullMaxBytes(maxAhead))
	if err != nil {
		return err
	}
	defer p.leave()
	if p.pending == 0 && end == 0 {
		return nil
	}
	for {
		m, meta, err := p.read()
		if err != nil {
			return err
		}
		if do(m, meta); meta.NumPending == 0 && meta.Sequence.Stream >= end {
			return nil
		}
	}
}
