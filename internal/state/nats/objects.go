package nats

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Objects are named sequences of bytes in an object bucket beside the state's own bucket, in the format of JetStream's clients. The bucket is made
// when the first object is put. Objects are safe for concurrent use.
type Objects struct {
	store *Store
	name  string // of the bucket
}

// Errors of objects.
var (
	// ErrNoObject is returned if there is no object of a name.
	ErrNoObject = errors.New("the bucket has no such object")
	// ErrObject is returned for an object that is not what was put.
	ErrObject = errors.New("the object in the bucket is not what was put there")
)

// Bounds of an object and of its transfer.
const (
	chunkBytes  = 128 << 10
	maxInfo     = 16 << 10 // bytes of the message that describes an object
	objectLimit = 30 * time.Second
)

// Bucket returns the name of the bucket in NATS.
func (o *Objects) Bucket() string { return o.name }

func (o *Objects) stream() string             { return "OBJ_" + o.name }
func (o *Objects) chunks(of string) string    { return "$O." + o.name + ".C." + of }
func (o *Objects) about(object string) string { return "$O." + o.name + ".M." + object }
func encodeObject(object string) string       { return base64.URLEncoding.EncodeToString([]byte(object)) }

// objectInfo describes an object. The bucket stores it as a message.
type objectInfo struct {
	NUID    string `json:"nuid"` // of its chunks
	Size    int64  `json:"size"`
	Deleted bool   `json:"deleted"`
	Options struct {
		Link json.RawMessage `json:"link"`
	} `json:"options"`
}

// nuids are the identifiers that clients give to the chunks of an object. Anything else could be a pattern of subjects.
var nuids = regexp.MustCompile(`^[A-Za-z0-9]{10,40}$`)

func (i *objectInfo) check() error {
	if !nuids.MatchString(i.NUID) || i.Size < 0 || len(i.Options.Link) > 0 {
		return ErrObject
	}
	return nil
}

// Put puts an object, in place of any other one of its name. When it returns nil, the servers have the whole object.
func (o *Objects) Put(ctx context.Context, object string, content io.Reader) error {
	if err := o.store.writable(); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, objectLimit)
	defer cancel()
	limited, done := o.store.rights.asking(limited)
	bucket, err := o.prepare(limited, object)
	if err == nil {
		chunk := min(chunkBytes, int(o.store.conn.MaxPayload())-besides)
		sum := sha256.New()
		var put *jetstream.ObjectInfo
		put, err = bucket.Put(limited, jetstream.ObjectMeta{Name: object, Opts: &jetstream.ObjectMetaOptions{ChunkSize: uint32(chunk)}}, io.TeeReader(content, sum))
		if err == nil {
			err = o.compare(limited, object, int64(put.Size), sum.Sum(nil))
		}
	}
	if err = done(err); err != nil {
		return causeOf(ctx, fmt.Errorf("put an object into the bucket %s: %w", o.name, err))
	}
	return nil
}

// compare reads an object back, and returns an error unless it is what was put. The client may confirm an object of which a part was lost, or came
// twice, because another node became the leader.
func (o *Objects) compare(ctx context.Context, object string, size int64, want []byte) error {
	for try := 1; ; try++ { // another process may be putting the same object
		sum := sha256.New()
		got, err := o.Get(ctx, object, size)
		if err == nil {
			_, err = io.Copy(sum, got)
			got.Close()
		}
		if err == nil && !bytes.Equal(sum.Sum(nil), want) {
			err = ErrObject
		}
		if err == nil || try == prepareTries || !pause(ctx, tryEvery) {
			return err
		}
	}
}

// prepareTries is how often a bucket that does not answer is tried: another process may just have made it, and it may have no leader yet.
const prepareTries = 3

// prepare returns the bucket, ready for an object to be put.
func (o *Objects) prepare(ctx context.Context, object string) (bucket jetstream.ObjectStore, err error) {
	for try := 1; ; try++ {
		if bucket, err = o.bucket(ctx); err == nil {
			err = o.clear(ctx, object)
		}
		silent := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, client.ErrNoResponders)
		if !silent || try == prepareTries || o.store.writable() != nil || !pause(ctx, tryEvery) {
			return bucket, err
		}
	}
}

// clear removes the description of an object if no client can have written it: a client that puts the object again would remove the
// chunks that it names.
func (o *Objects) clear(ctx context.Context, object string) error {
	_, err := o.info(ctx, encodeObject(object))
	if errors.Is(err, ErrNoObject) {
		return nil
	}
	if !errors.Is(err, ErrObject) {
		return err
	}
	stream, err := o.store.js.Stream(ctx, o.stream())
	if err != nil {
		return err
	}
	return stream.Purge(ctx, jetstream.WithPurgeSubject(o.about(encodeObject(object))))
}

// bucket returns the bucket. It makes it if missing, with three replicas in a cluster.
func (o *Objects) bucket(ctx context.Context) (jetstream.ObjectStore, error) {
	bucket, err := o.store.js.ObjectStore(ctx, o.name)
	if !errors.Is(err, jetstream.ErrBucketNotFound) {
		return bucket, err
	}
	config := jetstream.ObjectStoreConfig{Bucket: o.name, Description: "files of tools that toolsrv serves, by their digests", Storage: jetstream.FileStorage, Replicas: 1}
	if o.store.conn.ConnectedClusterName() != "" {
		config.Replicas = 3
	}
	bucket, err = o.store.js.CreateObjectStore(ctx, config)
	if errors.Is(err, jetstream.ErrBucketExists) { // another process has just made it
		return o.store.js.ObjectStore(ctx, o.name)
	}
	return bucket, err
}

// Get returns an object, which must have that size. The caller must check what it reads: anybody who may write to the bucket may have replaced the
// content, and reaching the end proves nothing. It fails if there is no such object, or if its size differs. ctx also bounds the reading.
func (o *Objects) Get(ctx context.Context, object string, size int64) (io.ReadCloser, error) {
	if err := o.store.usable(); err != nil {
		return nil, err
	}
	info, err := o.info(ctx, encodeObject(object))
	if errors.Is(err, ErrNoObject) || errors.Is(err, ErrObject) {
		return nil, err
	}
	if err != nil {
		return nil, causeOf(ctx, err)
	}
	if info.Size != size {
		return nil, fmt.Errorf("%w: it has %d bytes instead of %d", ErrObject, info.Size, size)
	}
	if size == 0 {
		return io.NopCloser(bytes.NewReader(nil)), nil
	}
	reading, cancel := within(ctx, objectLimit)
	return &objectReader{of: o, ctx: reading, cancel: cancel, subject: o.chunks(info.NUID), left: size, next: 1}, nil
}

// An objectReader reads the chunks of an object, each from the leader of the stream. A consumer would be slower: in a cluster its first request may
// be lost, and then it is silent for two seconds.
type objectReader struct {
	of      *Objects
	ctx     context.Context
	cancel  context.CancelFunc
	subject string
	left    int64 // bytes still to come
	next    uint64
	chunk   []byte
}

// Read implements io.Reader.
func (r *objectReader) Read(p []byte) (int, error) {
	for len(r.chunk) == 0 {
		if r.left == 0 {
			return 0, io.EOF
		}
		m, err := r.of.store.askOf(r.ctx, r.of.stream(), wanted{Sequence: r.next, Next: r.subject})
		switch {
		case errors.Is(err, errGone), err == nil && (int64(len(m.Data)) > r.left || m.Sequence < r.next || m.Subject != r.subject):
			return 0, ErrObject
		case err != nil:
			return 0, causeOf(r.ctx, fmt.Errorf("read an object of the bucket %s: %w", r.of.name, err))
		}
		r.chunk, r.next = m.Data, m.Sequence+1
		r.left -= int64(len(r.chunk))
	}
	n := copy(p, r.chunk)
	r.chunk = r.chunk[n:]
	return n, nil
}

// Close implements io.Closer.
func (r *objectReader) Close() error {
	r.cancel()
	return nil
}

// info asks the leader for the description of an object.
func (o *Objects) info(ctx context.Context, encoded string) (info objectInfo, err error) {
	m, err := o.store.askOf(ctx, o.stream(), wanted{Last: o.about(encoded)})
	if err != nil {
		if errors.Is(err, errGone) || errors.Is(err, jetstream.ErrStreamNotFound) {
			err = ErrNoObject
		}
		return info, err
	}
	if len(m.Data) > maxInfo || json.Unmarshal(m.Data, &info) != nil {
		return info, ErrObject
	}
	if err := info.check(); err != nil || !info.Deleted {
		return info, err
	}
	return info, ErrNoObject
}
