package tlsfiles

import "time"

// SetEvery changes how often the files are checked. It must be called before Watch.
func SetEvery(s *Source, d time.Duration) { s.every = d }
