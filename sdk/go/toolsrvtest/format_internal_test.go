package toolsrvtest

import "testing"

func TestFormats(t *testing.T) {
	t.Parallel()
	tests := []struct {
		format, good, bad string
	}{
		{"date-time", "2026-01-02T03:04:05.5+01:00", "2026-01-02 03:04:05Z"},
		{"date", "2024-02-29", "2026-02-29"},
		{"time", "03:04:05Z", "03:04"},
		{"email", "ada@example.com", "Ada <ada@example.com>"},
		{"uri", "https://example.com/a?b#c", "/a"},
		{"ipv4", "10.1.2.3", "10.1.2"},
		{"ipv4", "10.1.2.3", "::1"},
		{"ipv6", "::1", "fe80::1%eth0"},
		{"uuid", "01234567-89ab-cdef-0123-456789ABCDEF", "0123456789abcdef0123456789abcdef"},
		{"regex", "^a+$", "("},
	}
	for _, test := range tests {
		if !hasFormat(test.format, test.good) {
			t.Errorf("%s: %q is refused, want it taken", test.format, test.good)
		}
		if hasFormat(test.format, test.bad) {
			t.Errorf("%s: %q is taken, want it refused", test.format, test.bad)
		}
	}
	if !hasFormat("unheard-of", "x") {
		t.Error("a format that is unknown here is refused, want it left to the server")
	}
}
