package tlsfiles

import "time"

// SetEvery changes how often the files are looked at, before Watch.
func SetEvery(s *Source, d time.Duration) { s.every = d }
