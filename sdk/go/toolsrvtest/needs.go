package toolsrvtest

import (
	"net/url"
	"slices"
	"strings"
)

// needs are what a tool declares, as the manifest has it.
type needs struct {
	HTTP     []string
	KV       bool
	Secrets  []string
	Settings map[string]any
	Tools    []string
	Files    []string
}

// and returns the needs of a module and the needs of one of its tools.
func (n needs) and(more needs) needs {
	return needs{
		HTTP: slices.Concat(n.HTTP, more.HTTP), KV: n.KV || more.KV, Secrets: slices.Concat(n.Secrets, more.Secrets), Settings: n.Settings,
		Tools: slices.Concat(n.Tools, more.Tools), Files: slices.Concat(n.Files, more.Files),
	}
}

// reaches reports whether a URL was declared.
func (n needs) reaches(u *url.URL) bool {
	return slices.ContainsFunc(n.HTTP, func(declared string) bool {
		begin, err := url.Parse(declared)
		if err != nil || begin.Scheme != u.Scheme || portOf(begin) != portOf(u) {
			return false
		}
		name := strings.ToLower(u.Hostname())
		domain, many := strings.CutPrefix(strings.ToLower(begin.Hostname()), "*")
		if many && !strings.HasSuffix(name, domain) || !many && name != domain {
			return false
		}
		prefix := strings.TrimSuffix(begin.EscapedPath(), "/")
		rest, ok := strings.CutPrefix(u.EscapedPath(), prefix)
		return ok && (rest == "" || rest[0] == '/')
	})
}

func portOf(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	return map[string]string{"http": "80", "https": "443"}[u.Scheme]
}
