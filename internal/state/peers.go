package state

// MaxTold is the largest size of a message to peers in bytes, 32 KiB. Larger ones are not told, and not heard.
const MaxTold = 32 << 10

// Peers are the processes that have the same store, this one among them. A [Store] that several processes can have is Peers, too. What they tell each
// other is not kept: whoever is cut off at the moment does not hear it. Anybody who may use the store could have said it.
type Peers interface {
	// Tell tells all that hear a topic, this process among them. It waits for nobody. A topic is a word of letters, digits and dashes.
	Tell(topic string, message []byte)
	// Hear has f called with what is told of a topic, one message after the other. A message belongs to f until it returns. What comes faster than f
	// takes it is lost. Once the returned function has returned, f is not called any more; f must not call it.
	Hear(topic string, f func(message []byte)) (stop func())
}
