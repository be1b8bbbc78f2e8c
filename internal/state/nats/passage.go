package nats

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// heartbeat is how often the server says that nothing has happened.
	heartbeat = time.Second
	// silentFor is how long a stream may be silent of which there is more: then it is read anew, maybe from another node.
	silentFor = 5 * time.Second
)

var (
	// errSilent is returned where a node has less than the leader, and nothing more comes.
	errSilent = errors.New("the node that was asked lags behind")
	// errNoLeader is returned where no reading of a stream began at the node that leads it.
	errNoLeader = errors.New("the stream's leader could not be reached")
)

// mostPlaced is how often a reading is begun that must be at one node: of three, one of a thousand finds it in the last tries only, and of five
// one of a hundred does not.
const mostPlaced = 20

// A passage is a reading of a stream, message by message. It ends where one is missing, and where none comes for a while though there are more.
type passage struct {
	store    *Store
	stream   string
	name     string // of the consumer
	pending  uint64 // messages that the node had when it began
	messages jetstream.MessagesContext
	ctx      context.Context
	cancel   context.CancelCauseFunc
	late     *time.Timer
	patient  bool // that no more comes is no wonder
	next     uint64
}

// enter begins a passage. The server has it at any node that has the stream, which may be behind; leader is the node that it must be at, or empty.
func enter(ctx context.Context, s *Store, stream jetstream.Stream, leader string, config jetstream.ConsumerConfig, options ...jetstream.PullMessagesOpt) (*passage, error) {
	config.AckPolicy, config.MemoryStorage, config.Replicas = jetstream.AckNonePolicy, true, 1
	p := &passage{store: s, stream: stream.CachedInfo().Config.Name, next: 1}
	var consumer jetstream.Consumer
	for try := 0; consumer == nil; try++ {
		making, done := s.rights.asking(ctx)
		made, err := stream.CreateConsumer(making, config)
		if err = done(err); err != nil {
			return nil, err
		}
		info := made.CachedInfo()
		p.name, p.pending = info.Name, info.NumPending
		switch {
		case leader == "" || info.Cluster == nil || info.Cluster.Leader == leader: // nil: there is one node
			consumer = made
		case try == mostPlaced:
			p.remove()
			return nil, errNoLeader
		default: // it is placed by chance
			p.remove()
		}
	}
	var err error
	p.messages, err = consumer.Messages(append(options, jetstream.PullHeartbeat(heartbeat), jetstream.PullExpiry(10*heartbeat), jetstream.WithMessagesErrOnMissingHeartbeat(true))...)
	if err != nil {
		p.remove()
		return nil, err
	}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	p.late = time.AfterFunc(silentFor, func() { p.cancel(errSilent) })
	return p, nil
}

// wait has the passage wait for new messages from now on, however long that takes.
func (p *passage) wait() {
	p.patient = true
	p.late.Stop()
}

// read returns the next message.
func (p *passage) read() (jetstream.Msg, *jetstream.MsgMetadata, error) {
	m, err := p.messages.Next(jetstream.NextContext(p.ctx))
	if err != nil {
		if p.ctx.Err() != nil {
			err = context.Cause(p.ctx)
		}
		return nil, nil, err
	}
	meta, err := m.Metadata()
	if err != nil {
		return nil, nil, err
	}
	if meta.Sequence.Consumer != p.next {
		return nil, nil, fmt.Errorf("message %d came instead of %d", meta.Sequence.Consumer, p.next)
	}
	p.next++
	if !p.patient {
		p.late.Reset(silentFor)
	}
	return m, meta, nil
}

// leave ends the passage.
func (p *passage) leave() {
	p.late.Stop()
	p.cancel(nil)
	p.messages.Stop()
	p.remove()
}

// remove deletes the consumer, if the servers are there. Nobody waits for that: it would go by itself otherwise.
func (p *passage) remove() {
	_ = p.store.conn.Publish("$JS.API.CONSUMER.DELETE."+p.stream+"."+p.name, nil) // without a subject for an answer
}
