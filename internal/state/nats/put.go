package nats

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// underWay is how many chunks are sent before the first of them is confirmed.
	underWay = 32
	// confirmLimit is how long the next confirmation may take. A leader that is replaced drops what it has not stored yet, and tells nobody. This
	// can happen right after a bucket was made.
	confirmLimit = 5 * time.Second
	// compareTries is how often an object that differs is read back: another process may be putting the same object.
	compareTries = 3
)

// Put puts an object. It replaces any other object of the same name. When it returns nil, the servers have the whole object. If they lose a part
// of it, Put reads content again from its start. The client library has a Put, too, but that waits for a lost part until ctx ends. And if it
// sends a part again, it sends wrong bytes.
func (o *Objects) Put(ctx context.Context, object string, content io.ReadSeeker) error {
	if err := o.store.writable(); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, objectLimit)
	defer cancel()
	limited, done := o.store.rights.asking(limited)
	if err := done(o.put(limited, object, content)); err != nil {
		return causeOf(ctx, fmt.Errorf("put an object into the bucket %s: %w", o.name, err))
	}
	return nil
}

// put sends the chunks, and describes the object only once all of them are confirmed. So the description can be sent again alone, and it never names
// chunks that were given up.
func (o *Objects) put(ctx context.Context, object string, content io.ReadSeeker) error {
	var before objectInfo // description of the object that is replaced
	var info jetstream.ObjectInfo
	sum := sha256.New()
	err := o.insist(ctx, func() (err error) {
		if before, err = o.prepare(ctx, object); err != nil {
			return err
		}
		if _, err = content.Seek(0, io.SeekStart); err != nil {
			return err
		}
		sum.Reset()
		info, err = o.sendChunks(ctx, io.TeeReader(content, sum))
		return err
	})
	if err != nil {
		return err
	}
	info.Name, info.Digest = object, jetstream.GetObjectDigestValue(sum)
	description := client.NewMsg(o.about(encodeObject(object)))
	description.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
	description.Header.Set(jetstream.MsgIDHeader, info.NUID) // the leader takes it once, however often it is sent
	if description.Data, err = json.Marshal(info); err != nil {
		return err
	}
	err = o.insist(ctx, func() error {
		limited, cancel := context.WithTimeout(ctx, confirmLimit)
		defer cancel()
		_, err := o.store.send(limited, description)
		return err
	})
	if err == nil {
		err = o.compare(ctx, object, int64(info.Size), sum.Sum(nil))
	}
	if err == nil && before.NUID != "" {
		o.purge(ctx, before.NUID)
	}
	return err
}

// insist repeats do until it succeeds, or fails with an error that does not pass.
func (o *Objects) insist(ctx context.Context, do func() error) error {
	for {
		err := do()
		if !passes(err) || o.store.writable() != nil || !pause(ctx, tryEvery) {
			return err
		}
	}
}

// passes reports whether an error may be due to a bucket that has just been made, or has no leader for a moment.
func passes(err error) bool {
	said, isSaid := errors.AsType[*jetstream.APIError](err)
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, client.ErrNoResponders) || errors.Is(err, errAgain) ||
		errors.Is(err, jetstream.ErrStreamNotFound) || isSaid && said.ErrorCode == noLeader
}

// prepare makes the bucket if it is missing, and returns its description of an object: an empty one if there is none, or if no client can have written it.
func (o *Objects) prepare(ctx context.Context, object string) (objectInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	if err := o.make(ctx); err != nil {
		return objectInfo{}, err
	}
	info, err := o.info(ctx, encodeObject(object))
	if errors.Is(err, ErrNoObject) || errors.Is(err, ErrObject) {
		return objectInfo{}, nil
	}
	return info, err
}

// make makes the bucket if it is missing, with three replicas in a cluster.
func (o *Objects) make(ctx context.Context) error {
	_, err := o.store.js.Stream(ctx, o.stream())
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	config := jetstream.ObjectStoreConfig{Bucket: o.name, Description: "files of tools that toolsrv serves, by their digests", Storage: jetstream.FileStorage, Replicas: 1}
	if o.store.conn.ConnectedClusterName() != "" {
		config.Replicas = 3
	}
	_, err = o.store.js.CreateObjectStore(ctx, config)
	if errors.Is(err, jetstream.ErrBucketExists) { // another process has just made it
		return nil
	}
	return err
}

// sendChunks sends content under a new name, and returns once the leader has confirmed all chunks in order. If it fails, it removes what it has sent.
// Collect removes what arrives after that.
func (o *Objects) sendChunks(ctx context.Context, content io.Reader) (info jetstream.ObjectInfo, err error) {
	conn := o.store.conn
	size := min(chunkBytes, int(conn.MaxPayload())-besides)
	info.Bucket, info.NUID, info.Opts = o.name, rand.Text(), &jetstream.ObjectMetaOptions{ChunkSize: uint32(size)}
	inbox := conn.NewInbox()
	answers, err := conn.SubscribeSync(inbox + ".*")
	if err != nil {
		return info, fmt.Errorf("send to NATS: %w", err)
	}
	number := func(n uint32) string { return inbox + "." + strconv.FormatUint(uint64(n), 10) }
	defer func() {
		if err != nil && info.Chunks > 0 {
			o.giveUp(context.WithoutCancel(ctx), info.NUID, answers, number(info.Chunks-1))
		}
		_ = answers.Unsubscribe()
	}()
	chunk := make([]byte, size)
	last := uint64(0) // sequence
	for confirmed, more := uint32(0), true; more || confirmed < info.Chunks; {
		if more && info.Chunks-confirmed < underWay {
			n, err := io.ReadFull(content, chunk)
			if more = err == nil; err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				return info, err
			}
			if n == 0 {
				continue
			}
			if err := conn.PublishRequest(o.chunks(info.NUID), number(info.Chunks), chunk[:n]); err != nil {
				return info, fmt.Errorf("send to NATS: %w", err)
			}
			info.Chunks++
			info.Size += uint64(n)
			continue
		}
		sequence, err := awaitConfirmation(ctx, answers, number(confirmed))
		if err == nil && sequence <= last {
			err = errAgain
		}
		if err != nil {
			return info, err
		}
		last = sequence
		confirmed++
	}
	return info, nil
}

// awaitConfirmation waits for the next confirmation, and returns its sequence. One with another subject means that an earlier chunk was lost.
func awaitConfirmation(ctx context.Context, answers *client.Subscription, subject string) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, confirmLimit)
	defer cancel()
	answer, err := answers.NextMsgWithContext(ctx)
	switch {
	case err != nil:
		return 0, fmt.Errorf("wait for NATS to confirm a part: %w", err)
	case answer.Subject != subject:
		return 0, errAgain
	}
	return confirmation(answer)
}

// giveUp removes the chunks of a try that failed. It first waits a moment until the last one is confirmed: the servers may store the remaining
// chunks after a purge, although the purge was sent later.
func (o *Objects) giveUp(ctx context.Context, nuid string, answers *client.Subscription, last string) {
	limited, cancel := context.WithTimeout(ctx, askLimit/2)
	defer cancel()
	for {
		if answer, err := answers.NextMsgWithContext(limited); err != nil || answer.Subject == last {
			break
		}
	}
	o.purge(ctx, nuid)
}

// purge removes chunks if it can. Otherwise Collect does.
func (o *Objects) purge(ctx context.Context, nuid string) {
	request, err := json.Marshal(jetstream.StreamPurgeRequest{Subject: o.chunks(nuid)})
	if err != nil || o.store.writable() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	_, _ = o.store.conn.RequestWithContext(ctx, "$JS.API.STREAM.PURGE."+o.stream(), request)
}

// compare reads an object back, and returns an error unless it is what was put.
func (o *Objects) compare(ctx context.Context, object string, size int64, want []byte) error {
	for try := 1; ; try++ {
		sum := sha256.New()
		got, err := o.Get(ctx, object, size)
		if err == nil {
			_, err = io.Copy(sum, got)
			got.Close()
		}
		if err == nil && !bytes.Equal(sum.Sum(nil), want) {
			err = ErrObject
		}
		if err == nil || try == compareTries || !pause(ctx, tryEvery) {
			return err
		}
	}
}
