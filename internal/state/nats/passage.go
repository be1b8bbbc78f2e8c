package nats

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// heartbeat is how often the server sends a sign of life if there are no messages.
	heartbeat = time.Second
	// silentFor is how long a passage waits for the next message while there are more. After that the stream is read again, maybe from another
	// node.
	silentFor = 5 * time.Second
)

var (
	// errSilent is returned if a node has fewer messages than the leader, and no more come.
	errSilent = errors.New("the node that was asked lags behind")
	// errNoLeader is returned if the server has never placed the consumer at the leader's node.
	errNoLeader = errors.New("the stream's leader could not be reached")
)

// mostPlaced is how many consumers are made until one is at the right node. The server places them by chance. With three nodes, one reading in a
// thousand needs most of these attempts; with five nodes, one in a hundred fails.
const mostPlaced = 20

// A passage reads a stream, message by message. It ends if a message is missing, or if none comes for a while although there are more.
type passage struct {
	store    *Store
	stream   string
	name     string // of the consumer
	pending  uint64 // messages that the node had for it at the beginning
	messages jetstream.MessagesContext
	ctx      context.Context
	cancel   context.CancelCauseFunc
	late     *time.Timer
	patient  bool // true once all are read, so silence is expected
	next     uint64
}

// enter begins a passage. If leader is "", the server may choose any node with the stream, even one that lags behind. Otherwise the consumer must be
// at the node leader.
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
		case leader == "" || info.Cluster == nil || info.Cluster.Leader == leader: // nil: there is only one node
			consumer = made
		case try == mostPlaced:
			p.remove()
			return nil, errNoLeader
		default: // the server chooses a node by chance
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

// wait lets the passage wait for new messages without a limit from now on.
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

// remove deletes the consumer if the servers can be reached. It does not wait: the servers delete an unused consumer anyway.
func (p *passage) remove() {
	_ = p.store.conn.Publish("$JS.API.CONSUMER.DELETE."+p.stream+"."+p.name, nil) // no subject for a reply
}
