package client

import "time"

// SetPatience changes how long a server may take to begin an answer, and how long the answer may then be silent.
func SetPatience(c *Client, begin, stall time.Duration) {
	c.look, c.change, c.stall = begin, begin, stall
}
