package state

// MaxTold is the largest size of a message to peers in bytes, 32 KiB. Larger ones are neither sent nor received.
const MaxTold = 32 << 10

// Peers are the processes that share a store, this one among them. A [Store] that several processes can share implements Peers. Messages are not
// stored: a process that is cut off at the moment does not receive them. Anybody who may use the store could have sent a message.
type Peers interface {
	// Tell sends a message to all that listen to a topic, this process among them. It does not wait for them. A topic is a word of letters,
	// digits and dashes.
	Tell(topic string, message []byte)
	// Hear calls f with each message of a topic, one after another, until stop is called. f may use a message only until it returns. Messages that
	// arrive faster than f returns are lost. f is not called any more once stop has returned. f must not call stop.
	Hear(topic string, f func(message []byte)) (stop func())
}
