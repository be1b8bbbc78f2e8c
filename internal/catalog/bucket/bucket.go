// Package bucket is a source of a catalog whose files lie in an object bucket, which several processes share.
//
// Each file has a small record in the state. So all processes see the changes in one order, at once, and a change is made only if nobody else has
// made one meanwhile. Contents are objects that are named after their digests and never change. Each process fetches a content once, checks its
// digest, and keeps it in the cache on disk.
//
// Contents that no record names are removed some time later.
package bucket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/catalog/registry"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/upload"
)

// Objects store contents under names. They are safe for concurrent use.
type Objects interface {
	// Bucket returns the name of the bucket.
	Bucket() string
	// Put stores an object, in place of any with the same name. It is durable when Put returns without an error. Put may read content several times.
	Put(ctx context.Context, object string, content io.ReadSeeker) error
	// Get returns an object of that many bytes. Its content must not be trusted.
	Get(ctx context.Context, object string, size int64) (io.ReadCloser, error)
	// Room returns how many bytes can still be put, and how many the bucket may have.
	Room(ctx context.Context) (left, most int64, err error)
	// Collect removes objects that are older than age and for which keep returns false, and what interrupted writes left behind.
	Collect(ctx context.Context, age time.Duration, keep func(object string) bool) (removed int, err error)
}

// Options configure a Bucket. Name and Cache are required.
type Options struct {
	// Name is the name of the bucket.
	Name string
	// Scripts tells which files are scripts. If nil, none are served.
	Scripts upload.Scripts
	// Cache keeps contents on this machine.
	Cache *registry.Cache
	// Versions is how many versions of a file are kept.
	Versions func() int
	// Logger is the log. Nil discards.
	Logger *slog.Logger
}

// A Bucket is a source. Close it after the Catalog that uses it.
type Bucket struct {
	options Options
	names   upload.Directory
	space   state.Space
	objects Objects // nil until Follow is called

	changes chan struct{}
	noted   chan struct{}   // has a value when there is something to note
	tried   chan struct{}   // closed once the records have been read, or can't be read
	once    sync.Once       // closes it
	ctx     context.Context // until Close
	stop    context.CancelFunc
	running sync.WaitGroup

	fetching turns

	mu     sync.Mutex
	files  map[string]file
	bytes  int64         // roughly how much memory the records take
	most   int64         // how much memory the records may take
	moved  chan struct{} // closed at the next change of files
	synced bool
	failed error // why the records can't be read
	odd    int   // how many ignored records were logged
	more   bool  // there are too many records, or they take too much memory
}

// A file is the state's record of a file.
type file struct {
	record
	version uint64
	err     error // why the record can't be used
	hidden  bool  // this server serves no files with such a name
}

const (
	// mostRecords bounds the number of files, including removed ones.
	mostRecords = 120_000
	// mostBytes is about how much memory all records may take. The records that toolsrv itself writes stay below it, but a record of 32 KiB from
	// another writer can take 160 KiB.
	mostBytes = 256 << 20
	// mostOdd is how many ignored records are logged.
	mostOdd = 20
)

// errMore is returned if there are more records than are allowed.
var errMore = fmt.Errorf("there are more than %d files, or their records take more than %s: remove files", mostRecords, text.Size(mostBytes))

var _ catalog.Source = (*Bucket)(nil)

// Open returns a Bucket that is empty until Follow is called.
func Open(o Options) *Bucket {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	b := &Bucket{
		options: o, names: upload.Directory{Scripts: o.Scripts}, changes: make(chan struct{}, 1), noted: make(chan struct{}, 1), tried: make(chan struct{}),
		fetching: turns{of: map[string]chan struct{}{}}, files: map[string]file{}, most: mostBytes, moved: make(chan struct{}), failed: errors.New("the state has not been read yet"),
	}
	b.ctx, b.stop = context.WithCancel(context.Background())
	return b
}

// Space returns the name of the state's space for the records of a bucket.
func Space(name string) string { return "bucket/" + name }

// Follow starts to follow the bucket's objects and its records in a space. It is called once, before the Catalog begins.
func (b *Bucket) Follow(space state.Space, objects Objects) {
	b.space, b.objects = space, objects
	b.running.Go(b.follow)
	b.running.Go(b.note)
	b.running.Go(b.collect)
}

// ID names the bucket.
func (b *Bucket) ID() string { return "nats:" + b.options.Name }

// Place returns the address of a file.
func (b *Bucket) Place(name string) string {
	if name == "." {
		return b.ID()
	}
	return b.ID() + "/" + name
}

// Changes sends a value when a file has changed.
func (b *Bucket) Changes() <-chan struct{} { return b.changes }

// Scratch makes a temporary folder. The caller removes it.
func (b *Bucket) Scratch() (string, error) { return b.options.Cache.Scratch() }

// Close stops following the records.
func (b *Bucket) Close() error {
	b.stop()
	b.running.Wait()
	b.options.Cache.Release(b)
	return nil
}

// List returns the files, once they are known.
func (b *Bucket) List(ctx context.Context) (*catalog.Listing, error) {
	if b.objects == nil { // a command that only checks a configuration reads no bucket
		return &catalog.Listing{}, nil
	}
	select {
	case <-b.tried:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	l := &catalog.Listing{Entries: make([]catalog.Entry, 0, len(b.files))}
	lost := claim(b.files)
	for name, f := range b.files {
		e := catalog.Entry{ID: name, Folder: folderOf(name), Kind: catalog.Module, Err: cmp.Or(f.err, lost[name])}
		if !strings.HasSuffix(name, ".wasm") {
			e.Kind = catalog.Script
		}
		served := f.serves()
		switch {
		case f.hidden:
			continue
		case f.err != nil:
			e.Version = fmt.Sprint(f.version)
		case served == nil:
			continue
		default:
			e.Version, e.Size = served.Digest, served.Size
		}
		l.Entries = append(l.Entries, e)
	}
	slices.SortFunc(l.Entries, func(a, b catalog.Entry) int { return cmp.Compare(a.ID, b.ID) })
	switch {
	case b.failed != nil && len(b.files) == 0:
		return nil, b.failed
	case b.failed != nil:
		l.Problems = []catalog.Problem{{Name: ".", Err: fmt.Errorf("%w; serving what was known before", b.failed)}}
	}
	return l, nil
}

func folderOf(name string) string {
	if folder := path.Dir(name); folder != "." {
		return folder
	}
	return ""
}

// Open returns the content of a file.
func (b *Bucket) Open(ctx context.Context, name, version string) (io.ReadCloser, error) {
	b.mu.Lock()
	f := b.files[name]
	b.mu.Unlock()
	served := f.serves()
	if f.err != nil || served == nil || served.Digest != version {
		return nil, catalog.ErrChanged
	}
	return b.content(ctx, served.Digest, served.Size)
}

// follow applies changes of the records until the bucket is closed.
func (b *Bucket) follow() {
	state.Follow(b.ctx, b.space, "", state.Follower{
		Take:  func(e state.Event) error { b.take(e); return nil },
		Whole: func(keys map[string]bool) error { b.whole(keys); return nil },
		Failed: func(err error) {
			if err == nil { // the method whole has cleared b.failed
				return
			}
			b.mu.Lock()
			b.failed = err
			b.mu.Unlock()
			b.tell()
		},
	})
}

// whole notes that all records have been read. Files that were not among them are gone.
func (b *Bucket) whole(keys map[string]bool) {
	b.mu.Lock()
	for name := range b.files {
		if !keys[name] {
			b.drop(name)
		}
	}
	b.synced, b.failed = true, nil
	b.mu.Unlock()
	b.tell()
}

// drop forgets a file. b.mu is held.
func (b *Bucket) drop(name string) {
	if f, known := b.files[name]; known {
		b.bytes -= f.takes(name)
		delete(b.files, name)
	}
}

// takes returns about how many bytes of memory a file takes.
func (f *file) takes(name string) int64 {
	n := 200 + len(name)
	for _, k := range f.Kept {
		n += 200
		for _, path := range k.Paths {
			n += 16 + len(path)
		}
	}
	return int64(n)
}

// take applies a record.
func (b *Bucket) take(e state.Event) {
	var f file
	var odd error
	if !e.Deleted {
		f = file{version: e.Version}
		f.record, f.err = decode(e.Value)
		odd = b.names.CheckName(e.Key)
		f.hidden = odd != nil
	}
	b.mu.Lock()
	_, known := b.files[e.Key]
	b.drop(e.Key)
	switch large := b.bytes+f.takes(e.Key) > b.most; {
	case e.Deleted:
	case !known && (large || len(b.files) >= mostRecords):
		b.more = true
		odd = errMore
	case large:
		b.more = true
		f.record, f.err = record{}, errMore
		fallthrough
	default:
		b.files[e.Key] = f
		b.bytes += f.takes(e.Key)
	}
	if odd != nil {
		b.odd++
		if b.odd <= mostOdd {
			b.options.Logger.Warn("a file of the bucket is not served", "bucket", b.options.Name, "name", text.Short(e.Key), "error", odd)
		}
	}
	synced := b.synced
	close(b.moved)
	b.moved = make(chan struct{})
	b.mu.Unlock()
	if synced {
		b.tell()
	}
}

// tell tells the catalog, and the goroutine that runs note, that something may be new.
func (b *Bucket) tell() {
	b.once.Do(func() { close(b.tried) })
	for _, c := range []chan struct{}{b.changes, b.noted} {
		select {
		case c <- struct{}{}:
		default: // a notification is already pending
		}
	}
}
