package core

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"

	"github.com/toolsrv/toolsrv/internal/config"
)

// CacheDir returns the folder that keeps compiled code.
func CacheDir(c *config.Config) (string, error) {
	if c.Tools.CacheDir != "" {
		return c.Tools.CacheDir, nil
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(base, "toolsrv"), nil
}

// recordFile returns the path of a source's record of which files wait for which others, or "" if there is no place for it. source is the source's
// ID.
func recordFile(c *config.Config, source string) string {
	cache, err := CacheDir(c)
	if err != nil {
		return ""
	}
	id := sha256.Sum256([]byte(source))
	return filepath.Join(cache, fmt.Sprintf("paths-%x.json", id[:8]))
}

// cacheDir returns the folder that keeps compiled code, or "" after a warning.
func (s *Service) cacheDir(c *config.Config) string {
	directory, err := CacheDir(c)
	if err != nil {
		s.Logger.Warn("compiled tools are not kept on disk, so every start compiles them again: set tools.cache_directory", "error", err)
	}
	return directory
}
