package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/keys"
	"github.com/toolsrv/toolsrv/internal/runtime/limittable"
	"github.com/toolsrv/toolsrv/internal/secret"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools/config/key"
)

// OTLP is the table [otlp]: what the server sends to an OpenTelemetry collector.
type OTLP struct {
	// Endpoint is the collector's URL, such as "https://collector.example:4318". Spans go to /v1/traces below it. If empty, nothing is sent.
	Endpoint string `restart:"otlp.endpoint"`
	// Insecure allows an Endpoint without TLS on another machine.
	Insecure bool `restart:"otlp.insecure"`
	// Headers are sent to the collector. "${secret:name}" in a value is replaced by the secret's current value.
	Headers map[string]string `restart:"otlp.headers"`
	// Sample is the fraction of requests that is recorded, from 0 to 1.
	Sample float64 `restart:"otlp.sample"`
	// Metrics is whether the collector also gets metrics, at /v1/metrics below Endpoint.
	Metrics bool `restart:"otlp.metrics"`
	// Timeout is how long the collector may take to answer.
	Timeout time.Duration `restart:"otlp.timeout"`
	// Service is the server's name for the collector.
	Service string `restart:"otlp.service"`
}

func otlpTable(o *OTLP) key.Table {
	return key.Table{
		// an address with `https://`, or of this machine | OpenTelemetry collector that gets [traces](operations.md#traces), at `/v1/traces` below
		// this address
		"endpoint": keys.Word(&o.Endpoint, `an address such as "https://collector.example:4318"`, collector),
		// the collector may be on another machine without `https://`
		"insecure": keys.Boolean(&o.Insecure),
		// names and values | further headers for the collector; `${secret:name}` is replaced by a [secret](#grants)
		"headers": keys.Entries(&o.Headers, `a table such as {Authorization = "Bearer ${secret:collector}"}`, collectorHeader,
			func(to *string) keys.Reader { return keys.Word(to, "a string", headerValue) }),
		// also send [metrics](operations.md#metrics) to the collector, at `/v1/metrics`
		"metrics": keys.Boolean(&o.Metrics),
		// the fraction of requests that is recorded
		"sample": fraction(&o.Sample),
		// how long the collector may take for an answer
		"timeout": keys.Quantity(limittable.Time, int64(100*time.Millisecond), int64(time.Minute), func(n int64) { o.Timeout = time.Duration(n) }),
		// the server's name for the collector: `service.name`
		"service": keys.Word(&o.Service, "a string", prose(1, maxText)),
	}
}

// checkOTLP reports an address that needs TLS, since what is sent shows who calls which tool and when.
func checkOTLP(d *document, o *OTLP) {
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Scheme != "http" || o.Insecure {
		return
	}
	if ip := net.ParseIP(u.Hostname()); !strings.EqualFold(u.Hostname(), "localhost") && (ip == nil || !ip.IsLoopback()) {
		d.fail("otlp.endpoint", errors.New("must begin with https://, since it is on another machine: use https, or set insecure = true if nobody can listen on the way"))
	}
}

// collector checks the address of a collector.
func collector(s string) (string, error) {
	u, err := url.Parse(s)
	if s != "" && (err != nil || len(s) > maxURL || !isPort(u.Port()) || strings.ContainsAny(s, " \\\"<>^`{|}") || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "") {
		return "", errors.New(`is not the address of a collector: use one such as "https://collector.example:4318", and put keys into headers`)
	}
	return s, nil
}

// isPort reports whether the port of an address is valid or missing.
func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return s == "" || err == nil && n > 0
}

// collectorHeader checks the name of a header for a collector.
func collectorHeader(s string) (string, error) {
	plain := s != "" && len(s) <= maxText && !strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune(keys.Plain, r) })
	own := []string{"host", "connection", "content-length", "content-type", "content-encoding", "transfer-encoding", "user-agent"}
	if !plain || slices.Contains(own, strings.ToLower(s)) {
		return "", fmt.Errorf("%q is not the name of a header that can be set", text.Short(s))
	}
	return s, nil
}

// headerValue checks the value of a header. The error does not show the value, which may be a secret.
func headerValue(s string) (string, error) {
	if len(s) > maxURL || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", fmt.Errorf("is not a valid value for a header: use printable ASCII, at most %d bytes", maxURL)
	}
	_, err := secret.Fill(s, func(string) (string, error) { return "", nil })
	return s, err
}

// fraction reads a number from 0 to 1.
func fraction(to *float64) keys.Reader {
	return func(value any) error {
		var n float64
		switch v := value.(type) {
		case float64:
			n = v
		case int64:
			n = float64(v)
		default:
			return keys.WrongType(value, "a number from 0 to 1")
		}
		if !(n >= 0 && n <= 1) { // NaN, too
			return errors.New("must be a number from 0 to 1")
		}
		*to = n
		return nil
	}
}
