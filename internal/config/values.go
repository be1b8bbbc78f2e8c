package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/toolsrv/toolsrv/internal/credential"
	"github.com/toolsrv/toolsrv/internal/keys"
	"github.com/toolsrv/toolsrv/internal/pattern"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools/config/key"
)

// disabled reads the list of tools that start disabled. An entry may be a table with a reason.
func disabled(to *Tools) keys.Reader {
	return keys.List(`a list such as ["web", {tool = "math/div", reason = "being repaired"}]`, func(value any) error {
		var entry, reason string
		read := keys.Word(&entry, `a string, or a table such as {tool = "math/div", reason = "being repaired"}`, toolOrNamespace)
		if values, ok := value.(map[string]any); ok {
			readers := key.Table{"tool": read, "reason": keys.Word(&reason, "a string", prose(1, maxReason))}
			for _, key := range slices.Sorted(maps.Keys(values)) {
				if readers[key] == nil {
					return &unknownKeyError{name: key, table: readers}
				}
				if err := readers[key](values[key]); err != nil {
					return fmt.Errorf("%s: %s", key, withoutValue(err.Error()))
				}
			}
			if entry == "" {
				return errors.New(`tool is missing: name a tool or a namespace, as in {tool = "math/div", reason = "being repaired"}`)
			}
		} else if err := read(value); err != nil {
			return err
		}
		to.Disabled = append(to.Disabled, entry)
		if reason != "" {
			if to.Reasons == nil {
				to.Reasons = map[string]string{}
			}
			to.Reasons[entry] = reason
		}
		return nil
	})
}

// prose checks a text of least to most bytes. Line feeds and tabs are the only control characters allowed.
func prose(least, most int) func(string) (string, error) {
	return func(s string) (string, error) {
		switch {
		case len(s) < least:
			return "", errors.New("must not be empty")
		case len(s) > most:
			return "", fmt.Errorf("has %d bytes; at most %d are allowed", len(s), most)
		case strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }):
			return "", errors.New("has a control character: remove it")
		}
		return s, nil
	}
}

// mode checks which of the two lists applies.
func mode(s string) (string, error) {
	if s != denylist && s != allowlist {
		return "", fmt.Errorf("%q is not a mode: use %q or %q", text.Short(s), denylist, allowlist)
	}
	return s, nil
}

// search checks when MCP clients search for tools.
func search(s string) (string, error) {
	if !slices.Contains(searches[:], s) {
		return "", fmt.Errorf("%q is not known: use %q, %q or %q", text.Short(s), searches[0], searches[1], searches[2])
	}
	return s, nil
}

// proxyHeader checks in which header proxies name the client.
func proxyHeader(s string) (string, error) {
	i := slices.IndexFunc(proxyHeaders[:], func(known string) bool { return strings.EqualFold(known, s) })
	if i < 0 {
		return "", fmt.Errorf("%q is not a header that can name the client's address: use %q or %q", text.Short(s), proxyHeaders[0], proxyHeaders[1])
	}
	return proxyHeaders[i], nil
}

// addressOrNone checks host:port. "" means none.
func addressOrNone(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	return hostPort(s, "")
}

// addresses reads where to listen: one address, or a list of them.
func addresses(to *[]string, directory string) keys.Reader {
	check := func(s string) (string, error) {
		if path, ok := strings.CutPrefix(s, "unix:"); ok {
			return socketAddress(path, directory)
		}
		return hostPort(s, ", or unix: with the path of a socket")
	}
	return func(value any) error {
		var all []string
		var one string
		_, isList := value.([]any)
		read := keys.Word(&one, `an address such as "127.0.0.1:8000", or a list of addresses`, check)
		if isList {
			read = keys.Words(&all, check)
		}
		if err := read(value); err != nil {
			return err
		}
		if !isList {
			all = []string{one}
		}
		switch {
		case len(all) == 0:
			return errors.New(`the list is empty: name an address such as "127.0.0.1:8000", or leave the key out`)
		case len(all) > maxAddresses:
			return fmt.Errorf("there are %d addresses; at most %d are allowed", len(all), maxAddresses)
		}
		for i, a := range all {
			if slices.Contains(all[:i], a) && !strings.HasSuffix(a, ":0") {
				return &keys.ElementError{Index: i, Err: errors.New("is listed twice: leave one out")}
			}
		}
		*to = all
		return nil
	}
}

// socketAddress checks the path of a socket, and returns its address.
func socketAddress(path, directory string) (string, error) {
	if path == "" || strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }) || path[0] == '@' {
		return "", errors.New(`is not the path of a socket: use one such as "unix:/run/toolsrv/http.sock"`)
	}
	return "unix:" + keys.InDirectory(directory, path), nil
}

// hostPort checks host:port. The text of the parameter or is added to the error, and says what else is allowed.
func hostPort(s, or string) (string, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil || strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r == '/' || r > '~' }) {
		return "", fmt.Errorf(`%q is not an address: use host:port, such as "127.0.0.1:8000", "[::1]:8000" or ":8000"%s`, text.Short(s), or)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("%q has no valid port: use a number from 0 (any that is free) to 65535", text.Short(s))
	}
	return s, nil
}

// publicURL checks where clients reach a server: an HTTP URL, or only its path.
func publicURL(s string) (string, error) {
	u, err := url.Parse(s)
	absolute := err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" && u.User == nil
	path := strings.HasPrefix(s, "/") && !strings.HasPrefix(s, "//")
	// Braces would mark variables in the document.
	odd := strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`?#{}<>"\^|`+"`", r) })
	if s != "" && (err != nil || !absolute && !path || odd || len(s) > maxURL) {
		return "", fmt.Errorf("%q is not an address: use one such as %q, or a path such as %q", text.Short(s), "https://example.com/tools", "/tools")
	}
	return s, nil
}

// toolOrNamespace checks an entry of a list of tools, and removes a slash at its beginning.
func toolOrNamespace(s string) (string, error) {
	s = strings.TrimPrefix(s, "/")
	if s == "" {
		return "", errors.New(`the entry is empty: name a namespace or a tool such as "web" or "math/div"`)
	}
	if strings.ContainsRune(s, '*') {
		return "", fmt.Errorf("%q has a *, which only match allows: name a namespace or a tool", text.Short(s))
	}
	return s, pattern.CheckNames(s)
}

// token checks a token.
func token(s string) (string, error) { return s, credential.Check(s) }

// NoSocket is the value of admin.socket that means no socket.
const NoSocket = "none"

// socket checks the path of a Unix socket.
func socket(directory string) func(string) (string, error) {
	path := keys.Path(directory, false)
	return func(s string) (string, error) {
		if s == NoSocket {
			return s, nil
		}
		return path(s)
	}
}
