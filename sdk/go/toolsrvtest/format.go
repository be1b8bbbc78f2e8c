package toolsrvtest

import (
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"time"
)

// hasFormat reports whether text has a format of JSON Schema. One that this package does not know is left to the server.
func hasFormat(format, text string) bool {
	switch format {
	case "date-time":
		return parses(time.RFC3339, text)
	case "date":
		return parses(time.DateOnly, text)
	case "time":
		return parses("15:04:05Z07:00", text)
	case "email":
		address, err := mail.ParseAddress(text)
		return err == nil && address.Address == text
	case "uri":
		u, err := url.Parse(text)
		return err == nil && u.IsAbs()
	case "ipv4", "ipv6":
		address, err := netip.ParseAddr(text)
		return err == nil && address.Zone() == "" && address.Is4() == (format == "ipv4")
	case "uuid":
		return regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`).MatchString(text)
	case "regex":
		_, err := regexp.Compile(text)
		return err == nil
	}
	return true
}

func parses(layout, text string) bool {
	_, err := time.Parse(layout, text)
	return err == nil
}
