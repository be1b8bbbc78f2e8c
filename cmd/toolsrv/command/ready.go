package command

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/listen"
	"github.com/toolsrv/toolsrv/internal/nothttp"
)

// readyTime is how long a server may take to say whether it is ready. A probe that runs this command gives it a second or a little more. If this
// command waited longer, nobody could tell which of the two gave up.
const readyTime = 3 * time.Second

func newReady() *cobra.Command {
	return &cobra.Command{
		Use:   "ready [URL]",
		Short: "Ask a server whether it is ready for calls",
		Long: `Ask a server at /readyz whether it is ready for calls. The exit code is 0 if it is, and 1 if it
isn't or doesn't answer within 3 seconds. No token is needed.

It is the health check for containers, whose image has no other program to ask with. Without URL it
asks http://127.0.0.1:8000. unix:PATH asks a server on a socket. On a loopback address the
certificate is not checked.`,
		Example: `  toolsrv ready
  toolsrv ready https://tools.example.com
  toolsrv ready unix:/run/toolsrv/http.sock`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			base := "http://127.0.0.1:8000"
			if len(args) == 1 {
				base = args[0]
			}
			socket, isSocket := strings.CutPrefix(base, listen.Unix)
			if isSocket {
				base = "http://localhost"
			}
			target, err := readyURL(base)
			if err != nil {
				return &usageError{err}
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), readyTime)
			defer cancel()
			if err := askReady(ctx, target, socket, isSocket); err != nil {
				return err
			}
			_, err = io.WriteString(cmd.OutOrStdout(), "ready\n")
			return err
		},
	}
}

// readyURL returns where the server at an address says whether it is ready.
func readyURL(base string) (string, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("%q is not the address of a server: write it as http://127.0.0.1:8000 or unix:/run/toolsrv/http.sock", base)
	}
	return u.JoinPath("readyz").String(), nil
}

// askReady returns nil if the server is ready. It uses neither a proxy from the environment nor redirects.
func askReady(ctx context.Context, target, socket string, isSocket bool) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return err
	}
	transport := &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10}
	if isSocket {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		}
	}
	if ip := net.ParseIP(request.URL.Hostname()); ip != nil && ip.IsLoopback() || request.URL.Hostname() == "localhost" {
		transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} // the connection stays on this machine, and certificates have other names
	}
	response, err := transport.RoundTrip(request)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer from %s within %s", target, readyTime)
	}
	if err != nil {
		return fmt.Errorf("ask %s: %w", target, nothttp.Error(err))
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s answered %s", target, strings.TrimSpace(response.Status))
	}
	return nil
}
