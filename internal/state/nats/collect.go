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
	// maxBucket is how many bytes a bucket of objects may have if the bucket itself sets no limit.
	maxBucket = 4 << 30
	// mostCollected is how many objects are removed at a time.
	mostCollected = 10_000
	// mostObjects is how many objects may be in use: more than all files and their versions.
	mostObjects = 2_000_000
	// maxAhead is how many bytes may be received ahead of what has been examined.
	maxAhead = 4 << 20
	// collectLimit is how long a collection may take.
	collectLimit = 5 * time.Minute
	collectTries = 3
)

// Room returns how many more bytes can be put, and how many the bucket may have altogether.
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

// Collect removes the objects that were put longer than age ago, unless keep returns true for them. It also removes chunks of that age that
// belong to no object.
func (o *Objects) Collect(ctx context.Context, age time.Duration, keep func(object string) bool) (removed int, err error) {
	if err := o.store.writable(); err != nil {
		return 0, err
	}
	ctx, cancel := within(ctx, collectLimit)
	defer cancel()
	ctx, done := o.store.rights.asking(ctx)
	defer func() { err = done(err) }()
	for range collectTries { // tries again, since a consumer may stay silent
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
	before := stream.CachedInfo().TimeStamp.Add(-age) // by the servers' clock, as are the times of messages
	// The answers of a node that lags behind may be incomplete: an object whose chunks are in use may be missing. The leader knows the sequence that the
	// answers must reach.
	last, err := o.store.askOf(ctx, o.stream(), wanted{Last: o.about(">")})
	if err != nil && !errors.Is(err, errGone) {
		return 0, causeOf(ctx, err)
	}
	used := map[string]bool{} // chunks
	var old []unused
	var tooMany error
	// Whether a chunk is unused is known only once all objects are known. Objects that are put meanwhile are too young to be removed.
	err = o.each(ctx, stream, o.about(">"), last.Sequence, false, func(m jetstream.Msg, meta *jetstream.MsgMetadata) {
		object, bad := base64.URLEncoding.DecodeString(strings.TrimPrefix(m.Subject(), o.about("")))
		var info objectInfo
		if len(m.Data()) > maxInfo || json.Unmarshal(m.Data(), &info) != nil || info.Deleted {
			bad = ErrObject
		}
		if bad == nil && keep(string(object)) || !meta.Timestamp.Before(before) {
			switch {
			case !nuids.MatchString(info.NUID): // such an object names no chunks
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
	for i := 0; err == nil && i < len(old); i++ { // the purge spares messages that were put under the subject since then
		err = stream.Purge(ctx, jetstream.WithPurgeSubject(old[i].subject), jetstream.WithPurgeSequence(old[i].sequence+1))
	}
	if err != nil {
		return 0, causeOf(ctx, fmt.Errorf("look for unused objects in the bucket %s: %w", o.name, err))
	}
	return removed, nil
}

// unused names a subject whose messages, up to a sequence, are no longer used.
type unused struct {
	subject  string
	sequence uint64
}

// each calls do with the last message of each subject, as a node has them. If heads is true, the messages come without their data. It returns an
// error unless the node's messages reach the sequence end.
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
