package nats

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

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
	// ErrNoObject is returned if no object has the given name.
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
