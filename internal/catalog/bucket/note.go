package bucket

import (
	"encoding/json"
	"time"
)

const (
	// noteAfter is how long changes gather before they are noted.
	noteAfter = time.Second
	// maxNote is the size of what is noted, in bytes.
	maxNote = 128 << 20
)

// note keeps up what is on this machine: the records, for a start while the state is away, and the contents that are served.
func (b *Bucket) note() {
	for {
		select {
		case <-b.ctx.Done():
			return
		case <-b.noted:
		}
		if !pause(b.ctx, noteAfter) {
			return
		}
		b.mu.Lock()
		if !b.synced || b.failed != nil {
			b.mu.Unlock()
			continue
		}
		all := make(map[string]record, len(b.files))
		var served []string
		for name, f := range b.files {
			if s := f.serves(); s != nil && f.err == nil {
				all[name], served = f.record, append(served, s.Digest)
			}
		}
		b.mu.Unlock()
		b.options.Cache.UseOnly(b, served)
		content, err := json.Marshal(all)
		if err == nil {
			err = b.options.Cache.Note(b.ID(), content)
		}
		if err != nil {
			b.options.Logger.Warn("what is in the bucket is not noted on disk, so nothing of it is served after a start while NATS is away", "bucket", b.options.Name, "error", err)
		}
	}
}

// recall takes up what was noted.
func (b *Bucket) recall() {
	content := b.options.Cache.Noted(b.ID(), maxNote)
	var all map[string]record
	if content == nil || json.Unmarshal(content, &all) != nil {
		return
	}
	for name, r := range all {
		if b.names.CheckName(name) == nil && r.check() == nil {
			b.files[name] = file{record: r}
		}
	}
}
