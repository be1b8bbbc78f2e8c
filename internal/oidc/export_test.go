package oidc

import "time"

// SetPause changes the least time between two questions, before Run.
func SetPause(i *Issuer, d time.Duration) { i.pause = d }
