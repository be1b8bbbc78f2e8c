package toolsrv

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// check reports which part of an icon the server would refuse, or nil. It goes byte by byte, because package regexp would double the
// size of small modules.
func (i Icon) check() error {
	if err := i.checkSrc(); err != nil {
		return err
	}
	if i.MIMEType != "" && !isImage(i.MIMEType) {
		return fmt.Errorf("its MIMEType %q is not the type of a picture: write it like \"image/png\"", i.MIMEType)
	}
	if len(i.Sizes) > maxIconSizes {
		return fmt.Errorf("it has %d sizes; at most %d are allowed", len(i.Sizes), maxIconSizes)
	}
	for _, size := range i.Sizes {
		width, height, ok := strings.Cut(size, "x")
		if size != "any" && !(ok && isSide(width) && isSide(height)) {
			return fmt.Errorf("%q is not a size: write it like \"48x48\", or \"any\" for a picture that scales", size)
		}
	}
	if i.Theme != "" && i.Theme != "light" && i.Theme != "dark" {
		return fmt.Errorf("its Theme %q is not known: it can be light or dark", i.Theme)
	}
	return nil
}

func (i Icon) checkSrc() error {
	if data, ok := strings.CutPrefix(i.Src, "data:"); ok {
		kind, content, ok := strings.Cut(data, ";base64,")
		switch {
		case !ok || !isImage(kind):
			return errors.New(`a data URI must hold a picture in base64: write it like "data:image/png;base64,…"`)
		case i.MIMEType != "" && i.MIMEType != kind:
			return fmt.Errorf("its data is %s, but its MIMEType says %s: remove one", kind, i.MIMEType)
		}
		if raw, err := base64.StdEncoding.Strict().DecodeString(content); err != nil || len(raw) == 0 || strings.ContainsAny(content, "\r\n") {
			return errors.New("what follows \";base64,\" is not base64 with its padding")
		}
		return nil
	}
	address, ok := strings.CutPrefix(i.Src, "https://")
	if !ok {
		return errors.New(`its Src is neither an https nor a data URI: give the address of a picture, "https://…", or the picture itself, "data:image/png;base64,…"`)
	}
	authority, rest := address, ""
	if end := strings.IndexAny(address, "/?#"); end >= 0 {
		authority, rest = address[:end], address[end:]
	}
	switch {
	case strings.Contains(authority, "@"):
		return errors.New("its Src has a user's name or password, which every client would see: remove it")
	case !isAuthority(authority) || !isRest(rest):
		return fmt.Errorf("its Src %q is not an address: write a host after https://, and escape what a URI can't hold with %%", i.Src)
	}
	return nil
}

// isImage reports whether s is the type of a picture, such as "image/png".
func isImage(s string) bool {
	kind, ok := strings.CutPrefix(s, "image/")
	return ok && len(kind) >= 1 && len(kind) <= 63 && consists(kind[:1], lower+digits) && consists(kind, lower+digits+".+-")
}

// isSide reports whether s is the width or the height of a picture.
func isSide(s string) bool { return len(s) >= 1 && len(s) <= 5 && s[0] != '0' && consists(s, digits) }

// isAuthority reports whether s is a host, perhaps with a port.
func isAuthority(s string) bool {
	host, port, hasPort := s, "", false
	end := strings.LastIndexByte(s, ']')
	if colon := strings.LastIndexByte(s, ':'); colon > end {
		host, port, hasPort = s[:colon], s[colon+1:], true
	}
	if hasPort && (len(port) < 1 || len(port) > 5 || !consists(port, digits)) {
		return false
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		return ok && inner != "" && consists(inner, digits+"abcdefABCDEF:.")
	}
	return host != "" && consists(host, lower+upper+digits+"._-")
}

// isRest reports whether s can follow the host of an address.
func isRest(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] == '%' {
			if i+2 >= len(s) || !consists(s[i+1:i+3], digits+"abcdefABCDEF") {
				return false
			}
		} else if !consists(s[i:i+1], lower+upper+digits+"._~:/?#@!$&'()*+,;=[]-") {
			return false
		}
	}
	return true
}

const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"
)

// consists reports whether s consists of bytes of the set only.
func consists(s, set string) bool {
	for i := 0; i < len(s); i++ {
		if strings.IndexByte(set, s[i]) < 0 {
			return false
		}
	}
	return true
}
