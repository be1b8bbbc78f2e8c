package wasmtools

import (
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/text"
)

// An Icon is a picture that clients may show beside a tool. Its JSON is as in the Model Context Protocol.
type Icon struct {
	// Src is where the picture is: an address that begins with https://, or the picture itself as a data: URI in base64.
	Src string `json:"src"`
	// MIMEType is the picture's type, such as "image/png". It may be empty.
	MIMEType string `json:"mimeType,omitempty"`
	// Sizes are the sizes that the picture suits: "48x48", or "any" for one that scales. If it is empty, the picture suits all sizes.
	Sizes []string `json:"sizes,omitempty"`
	// Theme is "light" or "dark" for a picture that was made for such a background. Otherwise it is empty.
	Theme string `json:"theme,omitempty"`
}

// Clients get a tool's icons with every list of tools, so there is little room for them.
const (
	// maxIcons is the largest number of icons of a tool.
	maxIcons = 8
	// maxIconBytes is how many bytes the Src of all icons of a tool can have together: 32 KiB.
	maxIconBytes = 32 << 10
	// maxIconSizes is the largest number of sizes of an icon.
	maxIconSizes = 16
)

// The types, schemes and words that an icon may have.
var (
	iconThemes  = []string{"light", "dark"}
	iconAddress = regexp.MustCompile(`^https://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?([/?#]([A-Za-z0-9._~:/?#@!$&'()*+,;=\[\]-]|%[0-9A-Fa-f]{2})*)?$`)
	iconType    = regexp.MustCompile(`^image/[a-z0-9][a-z0-9.+-]{0,62}$`)
	iconSize    = regexp.MustCompile(`^([1-9][0-9]{0,4}x[1-9][0-9]{0,4}|any)$`)
)

// checkIcons reports what is wrong with the icons of a tool, or nil.
func checkIcons(icons []Icon) error {
	if len(icons) > maxIcons {
		return fmt.Errorf("icons: %d are too many; at most %d are allowed", len(icons), maxIcons)
	}
	size := 0
	for i, icon := range icons {
		if err := icon.check(); err != nil {
			return fmt.Errorf("icons[%d].%w", i, err)
		}
		size += len(icon.Src)
	}
	if size > maxIconBytes {
		return fmt.Errorf("icons: their src have %d bytes in total; at most %d are allowed: use smaller pictures, or https addresses", size, maxIconBytes)
	}
	return nil
}

// check reports what is wrong with the icon, beginning with the name of the member.
func (i Icon) check() error {
	if err := i.checkSrc(); err != nil {
		return fmt.Errorf("src: %w", err)
	}
	if i.MIMEType != "" && !iconType.MatchString(i.MIMEType) {
		return fmt.Errorf("mimeType: %q is not a picture's type: write it like \"image/png\"", text.Short(i.MIMEType))
	}
	if len(i.Sizes) > maxIconSizes {
		return fmt.Errorf("sizes: %d are too many; at most %d are allowed", len(i.Sizes), maxIconSizes)
	}
	for n, size := range i.Sizes {
		if !iconSize.MatchString(size) {
			return fmt.Errorf("sizes[%d]: %q is not a size: write it like \"48x48\", or \"any\" for a picture that scales", n, text.Short(size))
		}
	}
	if i.Theme != "" && !slices.Contains(iconThemes, i.Theme) {
		return fmt.Errorf("theme: %q is not known: it can be %s", text.Short(i.Theme), strings.Join(iconThemes, " or "))
	}
	return nil
}

// checkSrc reports what is wrong with the icon's Src, or nil.
func (i Icon) checkSrc() error {
	const remedy = `give the address of a picture, "https://…", or the picture itself, "data:image/png;base64,…"`
	if i.Src == "" {
		return errors.New("it is empty: " + remedy)
	}
	if data, ok := strings.CutPrefix(i.Src, "data:"); ok {
		return i.checkData(data)
	}
	address, ok := strings.CutPrefix(i.Src, "https://")
	if !ok {
		return fmt.Errorf("%q is neither an https nor a data URI: %s", text.Short(i.Src), remedy)
	}
	if at := strings.IndexAny(address, "/?#@"); at >= 0 && address[at] == '@' {
		return errors.New("it has a user's name or password, which every client would see: remove it")
	}
	if !iconAddress.MatchString(i.Src) {
		return fmt.Errorf("%q is not an address: write a host after https://, and escape other characters with %%", text.Short(i.Src))
	}
	return nil
}

// checkData checks what follows "data:".
func (i Icon) checkData(data string) error {
	mediaType, content, ok := strings.Cut(data, ";base64,")
	if !ok || !iconType.MatchString(mediaType) {
		return errors.New(`a data URI must hold a picture in base64: write it like "data:image/png;base64,…"`)
	}
	if i.MIMEType != "" && i.MIMEType != mediaType {
		return fmt.Errorf("the data is %s, but mimeType says %s: remove one", mediaType, text.Short(i.MIMEType))
	}
	if n, err := base64.StdEncoding.Strict().DecodeString(content); err != nil || len(n) == 0 || strings.ContainsAny(content, "\r\n") {
		return errors.New("what follows \";base64,\" is not base64 with its padding")
	}
	return nil
}
