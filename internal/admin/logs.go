package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"time"

	"github.com/toolsrv/toolsrv/internal/recent"
)

// LogsArguments are the arguments of the operation logs.
type LogsArguments struct {
	Level     string `json:"level,omitempty" enum:"debug,info,warn,error" description:"List only lines of this level or above."`
	Tool      string `json:"tool,omitempty" description:"List only lines about tools that match, such as math/add, math or math/*." maxLength:"1024"`
	Principal string `json:"principal,omitempty" description:"List only lines about this caller: by name, or as oidc+https%3a%2f%2fid.example.com+ann, which tells callers with the same name apart." maxLength:"256"`
	After     int    `json:"after,omitempty" description:"List lines with higher numbers, the oldest first; by default the last ones." minimum:"0"`
	Run       string `json:"run,omitempty" description:"The run of the server that the number belongs to. If it is another run, the lines of this one are listed from the beginning." maxLength:"64"`
	Limit     int    `json:"limit,omitempty" description:"How many lines to list at most; 0 means 100." minimum:"0" maximum:"1000"`
	Wait      int    `json:"wait,omitempty" description:"How many seconds to wait for a line if there is none yet." minimum:"0" maximum:"10"`
}

// Logs are lines of the log.
type Logs struct {
	Lines  []LogLine `json:"lines" description:"The lines, the oldest first."`
	Last   int       `json:"last" description:"The number of the last line that was looked at, to pass as after the next time."`
	Run    string    `json:"run" description:"The run of the server, which differs after each start."`
	Missed int       `json:"missed" description:"How many lines after the given number are no longer kept."`
}

// A LogLine is a line of the log.
type LogLine struct {
	Number     int             `json:"number" description:"The line's number since the server's start."`
	Time       time.Time       `json:"time" description:"When the line was written."`
	Level      string          `json:"level" description:"DEBUG, INFO, WARN or ERROR."`
	Message    string          `json:"message" description:"The message of the line."`
	Attributes json.RawMessage `json:"attributes" description:"What the line is about, as an object."`
}

// defaultLines is how many lines are listed by default.
const defaultLines = 100

func logs() Operation {
	o := Looks("logs", "List the last lines of the log, or new ones", func(ctx context.Context, r *Request, in LogsArguments) (Logs, error) {
		matches, err := matcher(in.Tool)
		if err != nil {
			return Logs{}, err
		}
		least := slog.Level(-1 << 30)
		if in.Level != "" {
			_ = least.UnmarshalText([]byte(in.Level)) // the schema has checked it
		}
		return linesOf(ctx, r, in, func(line *recent.Line) bool {
			if line.Level < least {
				return false
			}
			if in.Tool != "" {
				if path := cmp.Or(line.Text("tool"), line.Text("path")); path == "" || !matches(path) {
					return false
				}
			}
			return (in.Principal == "" || line.Text("principal") == in.Principal || line.Text("caller") == in.Principal) && !isLooking(line)
		})
	})
	o.waits = true
	return o
}

// isLooking reports whether a line is about a request for the log or for events. A client that follows the log must not get these, since each of its
// own requests would make a line that leads to the next request.
func isLooking(line *recent.Line) bool {
	if line.Level > slog.LevelInfo {
		return false
	}
	operation := line.Text("operation")
	return operation == "admin logs" || operation == "admin events"
}

// linesOf returns matching lines, and waits for them if requested.
func linesOf(ctx context.Context, r *Request, in LogsArguments, match func(*recent.Line) bool) (Logs, error) {
	if in.Limit == 0 {
		in.Limit = defaultLines
	}
	ctx, leave, err := r.waiting.await(ctx, r, in.Wait)
	if err != nil {
		return Logs{}, err
	}
	defer leave()
	of, run := &r.Service.Recent.Lines, strconv.FormatInt(r.Service.Began.UnixNano(), 36)
	after, all := uint64(in.After), Logs{Lines: []LogLine{}, Run: run}
	forward := after > 0
	if in.Run != "" && in.Run != run {
		after = 0
	}
	for woken := false; ; woken = true {
		lines, last, missed := of.After(after, in.Limit, forward, match)
		all.Last, all.Missed = int(last), all.Missed+int(missed)
		for _, line := range lines {
			attributes, err := json.Marshal(line.Attributes)
			if err != nil {
				return Logs{}, err
			}
			all.Lines = append(all.Lines, LogLine{int(line.Number), line.Time, line.Level.String(), line.Message, attributes})
		}
		if len(all.Lines) > 0 || all.Missed > 0 || ctx.Err() != nil {
			return all, nil
		}
		if after = last; woken {
			pause(ctx)
		}
		of.Wait(ctx, last)
	}
}
