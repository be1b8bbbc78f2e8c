package oidc

import "time"

// SetPause changes the shortest time between two requests to the issuer. It must be called before Run.
func SetPause(i *Issuer, d time.Duration) { i.pause = d }
