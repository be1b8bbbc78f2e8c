package server

import (
	"log/slog"
	"runtime"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/runtime/account"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/toolfile"
)

// leastMemory is the least memory that a server needs to be useful: see docs/operations.md.
const leastMemory = 128 << 20

// logDecided logs in one line the limits that the server has chosen at its start, from the machine or its container, where the configuration leaves
// them open.
func logDecided(to *slog.Logger, c *config.Config, connections int64) {
	size := func(key string, n int64) slog.Attr { return slog.String(key, text.RoundSize(n)) }
	memory := core.MemoryOf(c)
	attrs := []any{
		size("memory", memory.Machine), size("least_memory", leastMemory),
		size("tools_memory", memory.Tools), size("code_memory", memory.Code), size("heap", memory.Heap), size("bodies_memory", memory.Bodies),
		slog.Int("processors", runtime.GOMAXPROCS(0)),
		slog.Int64("open_files", account.MachineDescriptors()), slog.Int64("connections", connections),
	}
	if c.MCP.Enabled {
		attrs = append(attrs, slog.Int("streams", mostStreams(connections)))
	}
	cache, _ := core.CacheDir(c) // if there is none, another line says so
	attrs = append(attrs,
		slog.Int("places", toolfile.Places(c.Limits, false)), slog.Int("places_waiting", toolfile.Places(c.Limits, true)), slog.Int("queue", c.Limits.Queue),
		slog.Int("modules", c.Tools.Modules),
		slog.Bool("compiles_apart", len(c.Tools.CompileHelper) > 0), slog.Bool("reads_scripts_apart", len(c.Tools.ScriptHelper) > 0),
		slog.String("cache_directory", cache), slog.String("state_directory", c.State.Directory))
	to.Info("limits of this server", attrs...)
	if memory.Machine < leastMemory {
		to.Warn("the process has less memory than a server needs: give the machine or its container more", size("memory", memory.Machine), size("least_memory", leastMemory))
	}
}
