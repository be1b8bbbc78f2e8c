package wasmtools

import "encoding/json"

// Needs are what a tool wants to reach outside its sandbox, by the names of capabilities such as "http". It can reach nothing that it does
// not declare, and nothing that its operator does not grant. Needs must not be changed.
type Needs map[string]Need

// A Need is what a tool needs of one capability: the words of a list, an object, or, with neither, the capability as such.
type Need struct {
	// Words are the entries of a list, such as the URLs of "http".
	Words []string
	// Object is a JSON object, such as the schema of settings, or nil.
	Object json.RawMessage
}

// MarshalJSON writes a list, an object, or true.
func (n Need) MarshalJSON() ([]byte, error) {
	switch {
	case n.Object != nil:
		return json.Marshal(n.Object)
	case n.Words != nil:
		return json.Marshal(n.Words)
	}
	return []byte("true"), nil
}

// A Missing is something that a tool needs and can't use.
type Missing struct {
	// Capability is the name of the capability.
	Capability string
	// Entry is the entry of the need's list, such as a URL. It is empty where the need is not a list, and where the entry doesn't
	// matter.
	Entry string
	// Cause is why the tool can't use it.
	Cause Cause
	// Detail says more about the cause, such as which setting is required, or is empty.
	Detail string
	// Match is the pattern of the grant that can't be used, or empty, and Line is where it begins in its file, or 0.
	Match string
	Line  int
}

// A Cause is why a tool can't use something that it needs.
type Cause uint8

const (
	// NotGranted means that no grant has it.
	NotGranted Cause = iota
	// NoCapability means that the service doesn't have the capability.
	NoCapability
	// NoSecret means that no source has the secret that Entry names. If Entry is empty, the grant names the missing secret, whose name is not shown.
	NoSecret
	// NoState means that there is no place to keep things.
	NoState
	// Unusable means that the need or its grant can't be used, as Detail says.
	Unusable
)
