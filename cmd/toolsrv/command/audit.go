package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/client"
	"github.com/toolsrv/toolsrv/internal/admin/socket"
	"github.com/toolsrv/toolsrv/internal/audit"
)

// nothingAudited is the text about an audit without entries.
const nothingAudited = "Nothing was changed yet.\n"

// followEvery is how often `toolsrv audit --follow` asks for more.
const followEvery = time.Second

func newAudit() *cobra.Command {
	var o asking
	var last int
	var all, follow bool
	cmd := newAsking(&o, &cobra.Command{
		Use:   "audit",
		Short: "List who changed what on a running server, and who tried to",
		Long: `List the audit of a running server: each change of tokens, switches, files and grants, and refused
attempts. Each entry carries the hash of the one before. --json shows the hashes, and with --follow
prints one line for each entry.`,
		Example: `  toolsrv audit
  toolsrv audit --all --json > audit.json
  toolsrv audit verify`,
		Args: noArguments,
	}, func(ctx context.Context, c *client.Client, _ []string, out io.Writer) error {
		in := admin.AuditArguments{Last: last}
		if all {
			in.Last = 0
		}
		return readAudit(ctx, c, in, follow, o.asJSON, out)
	})
	flags := cmd.Flags()
	flags.IntVar(&last, "last", 100, "how `many` of the last entries to list")
	flags.BoolVar(&all, "all", false, "list all entries")
	flags.BoolVar(&follow, "follow", false, "go on listing entries as they come, until Ctrl-C")
	cmd.MarkFlagsMutuallyExclusive("last", "all")
	cmd.AddCommand(newAuditVerify())
	return cmd
}

// readAudit prints entries, page by page.
func readAudit(ctx context.Context, c *client.Client, in admin.AuditArguments, follow, asJSON bool, out io.Writer) error {
	whole, printed := admin.Audit{Entries: []audit.Record{}}, false
	for {
		answer, err := c.Do(ctx, "audit", in, "")
		if err != nil {
			if follow && ctx.Err() != nil {
				return nil
			}
			return err
		}
		var page admin.Audit
		if err := answer.Into(&page); err != nil {
			return err
		}
		before := in.After
		if n := len(page.Entries); n > 0 {
			in.After, in.Last = int(page.Entries[n-1].Number), 0
		}
		if page.More && in.After <= before || len(whole.Entries) > 2*audit.Most {
			return errors.New("the server sends a list of entries without an end: is it a toolsrv server?")
		}
		switch {
		case asJSON && follow:
			err = printLines(out, page.Entries)
		case asJSON:
			whole.Entries, whole.Ends = append(whole.Entries, page.Entries...), page.Ends
		default:
			err = showAudit(out, page.Entries, !printed)
			printed = printed || len(page.Entries) > 0
		}
		switch {
		case err != nil:
			return err
		case page.More:
		case follow:
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(followEvery):
			}
		case asJSON:
			return printJSON(out, whole)
		default:
			if !printed {
				_, err = io.WriteString(out, nothingAudited)
			}
			return err
		}
	}
}

// printLines prints each entry as a line of JSON.
func printLines(out io.Writer, entries []audit.Record) error {
	for _, e := range entries {
		line, err := json.Marshal(e)
		if err == nil {
			_, err = out.Write(append(escapeJSON(line), '\n'))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// showAudit prints entries for people.
func showAudit(out io.Writer, entries []audit.Record, first bool) error {
	if len(entries) == 0 {
		return nil
	}
	var rows [][]string
	if first {
		rows = append(rows, []string{"NUMBER", "TIME", "WHO", "FROM", "ACTION", "TARGET", "WHAT"})
	}
	for _, e := range entries {
		rows = append(rows, []string{fmt.Sprint(e.Number), stamp(e.Time), actorOf(&e.Entry), orDash(e.From), e.Action, orDash(e.Target), whatOf(&e.Entry)})
	}
	return table(out, rows)
}

// actorOf returns the name of who is behind an entry.
func actorOf(e *audit.Entry) string {
	switch {
	case e.Caller != "":
		return e.Caller
	case e.Who == "":
		return orDash(e.Origin)
	case e.Origin == "", e.Origin == socket.Origin: // names from the socket already say that they are users of the system
		return e.Who
	}
	return e.Who + " (" + e.Origin + ")"
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// whatOf returns a text about the target of an entry.
func whatOf(e *audit.Entry) (what string) {
	switch {
	case e.Refused != "":
		what = "refused: " + e.Refused
	case len(e.Before) > 0 && len(e.After) > 0:
		what = string(e.Before) + " → " + string(e.After)
	case len(e.Before) > 0:
		what = "was " + string(e.Before)
	default:
		what = string(e.After)
	}
	if e.Omitted > 0 {
		what += fmt.Sprintf(" (and %d refused attempts before)", e.Omitted)
	}
	return what
}

func newAuditVerify() *cobra.Command {
	var o asking
	var in admin.VerifyArguments
	cmd := newAsking(&o, &cobra.Command{
		Use:   "verify",
		Short: "Check that nobody has altered the audit of a running server",
		Long: `Check the hash of every entry in the audit of a running server. The exit code is 1 if an entry was
changed, removed or inserted.

Somebody who can write to the state can cut off the last entries, or rewrite all of them. To notice
that, give --known the number and the hash of an entry, as its log line shows them.`,
		Example: `  toolsrv audit verify
  toolsrv audit verify --known 4711:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08`,
		Args: noArguments,
	}, func(ctx context.Context, c *client.Client, _ []string, out io.Writer) error {
		answer, err := c.Do(ctx, "audit verify", in, "")
		if err != nil {
			return err
		}
		var v admin.Verified
		if err := answer.Into(&v); err != nil {
			return err
		}
		switch {
		case o.asJSON:
			err = printJSON(out, answer.Result)
		case v.OK && v.Last == 0:
			_, err = io.WriteString(out, nothingAudited)
		case v.OK:
			_, err = fmt.Fprintf(out, "Entries %d to %d are unaltered. The last one is %d:%s\n", v.First, v.Last, v.Last, oneLine(v.Hash))
		}
		if err == nil && !v.OK {
			err = errors.New(v.Problem)
		}
		return err
	})
	cmd.Flags().StringArrayVar(&in.Known, "known", nil, "an entry whose hash is known, as `number:hash`; can be given several times")
	completeFlag(cmd, "known", cobra.NoFileCompletions)
	return cmd
}
