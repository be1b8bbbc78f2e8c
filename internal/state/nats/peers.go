package nats

import (
	"sync"

	client "github.com/nats-io/nats.go"

	"github.com/toolsrv/toolsrv/internal/state"
)

var _ state.Peers = (*Store)(nil)

// mostUnheard is how many messages of a topic may be queued.
const mostUnheard = 512

// peers lets processes talk to each other without the stream. It implements state.Peers for the store.
type peers struct{ store *Store }

// Tell implements state.Peers.
func (p peers) Tell(topic string, message []byte) {
	s := p.store
	if len(message) > state.MaxTold || s.usable() != nil || s.conn == nil {
		return
	}
	_ = s.conn.Publish(s.bucket.topic(topic), message) // without a connection, the message is lost
}

// Hear implements state.Peers.
func (p peers) Hear(topic string, f func(message []byte)) (stop func()) {
	s := p.store
	ended, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		select {
		case <-s.ready:
		case <-s.ctx.Done():
			return
		case <-ended:
			return
		}
		if s.conn == nil || s.Broken() != nil {
			return
		}
		messages := make(chan *client.Msg, mostUnheard) // messages are dropped when it is full
		on, err := s.conn.ChanSubscribe(s.bucket.topic(topic), messages)
		if err != nil {
			return // it is closed
		}
		defer func() { _ = on.Unsubscribe() }()
		for {
			select {
			case m := <-messages:
				if len(m.Data) <= state.MaxTold {
					f(m.Data)
				}
			case <-s.ctx.Done():
				return
			case <-ended:
				return
			}
		}
	}()
	var once sync.Once
	return func() {
		once.Do(func() { close(ended) })
		<-over
	}
}
