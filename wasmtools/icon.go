package wasmtools

import (
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/jsontree"
	"github.com/toolsrv/toolsrv/internal/text"
)

// An Icon is a picture that clients may show beside a tool. Its JSON is as in the Model Context Protocol.
type Icon struct {
	// Src is where the picture is: an address that begins with https://, or the picture itself as a data: URI in base64.
	Src string `json:"src"`
	// MIMEType is the picture's type, such as "image/png". It may be empty.
	MIMEType string `json:"mimeType,omitempty"`
	// Sizes are the sizes that the picture is good for: "48x48", or "any" for one that scales. Empty: all.
	Sizes []string `json:"sizes,omitempty"`
	// Theme is "light" or "dark" for a picture that is made for a background of that kind, or empty.
	Theme string `json:"theme,omitempty"`
}

// Clients get a tool's icons with every list of tools, so there is little room for them.
const (
	// MaxIcons is the largest number of icons of a tool.
	MaxIcons = 8
	// MaxIconBytes is the largest length of the Src of a tool's icons together: 32 KiB.
	MaxIconBytes = 32 << 10
	// MaxIconSizes is the largest number of sizes of an icon.
	MaxIconSizes = 16
)

// The members that an icon may have, in the order in which they are best written, and what they may hold.
var (
	iconMembers = []string{"src", "mimeType", "sizes", "theme"}
	iconThemes  = []string{"light", "dark"}
	iconAddress = regexp.MustCompile(`^https://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?([/?#]([A-Za-z0-9._~:/?#@!$&'()*+,;=\[\]-]|%[0-9A-Fa-f]{2})*)?$`)
	iconType    = regexp.MustCompile(`^image/[a-z0-9][a-z0-9.+-]{0,62}$`)
	iconSize    = regexp.MustCompile(`^([1-9][0-9]{0,4}x[1-9][0-9]{0,4}|any)$`)
)

// checkIcons reports what is wrong with the icons of a tool, or nil.
func checkIcons(icons []Icon) error {
	if len(icons) > MaxIcons {
		return fmt.Errorf("icons: %d are too many; at most %d are allowed", len(icons), MaxIcons)
	}
	size := 0
	for i, icon := range icons {
		if err := icon.check(); err != nil {
			return fmt.Errorf("icons[%d].%w", i, err)
		}
		size += len(icon.Src)
	}
	if size > MaxIconBytes {
		return fmt.Errorf("icons: their src have %d bytes together; at most %d are allowed: use smaller pictures, or https addresses", size, MaxIconBytes)
	}
	return nil
}

// check reports what is wrong with the icon, beginning with the name of the member.
func (i Icon) check() error {
	if err := i.checkSrc(); err != nil {
		return fmt.Errorf("src: %w", err)
	}
	if i.MIMEType != "" && !iconType.MatchString(i.MIMEType) {
		return fmt.Errorf("mimeType: %q is not the type of a picture: write it like \"image/png\"", text.Short(i.MIMEType))
	}
	if len(i.Sizes) > MaxIconSizes {
		return fmt.Errorf("sizes: %d are too many; at most %d are allowed", len(i.Sizes), MaxIconSizes)
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
		return fmt.Errorf("%q is not an address: write a host after https://, and escape what a URI can't hold with %%", text.Short(i.Src))
	}
	return nil
}

// checkData checks what follows "data:".
func (i Icon) checkData(data string) error {
	mediaType, content, ok := strings.Cut(data, ";base64,")
	if !ok || !iconType.MatchString(mediaType) {
		return errors.New(`a data URI holds a picture in base64: write it like "data:image/png;base64,…"`)
	}
	if i.MIMEType != "" && i.MIMEType != mediaType {
		return fmt.Errorf("the data is %s, but mimeType says %s: remove one", mediaType, text.Short(i.MIMEType))
	}
	if n, err := base64.StdEncoding.Strict().DecodeString(content); err != nil || len(n) == 0 || strings.ContainsAny(content, "\r\n") {
		return errors.New("what follows \";base64,\" is not base64 with its padding")
	}
	return nil
}

// icons reads a tool's icons.
func (p part) icons() ([]Icon, error) {
	if !p.has("icons") {
		return nil, nil
	}
	array, err := p.array("icons")
	if err != nil {
		return nil, err
	}
	list, err := array.objects()
	if err != nil {
		return nil, err
	}
	icons := make([]Icon, len(list))
	for i, item := range list {
		if icons[i], err = item.icon(); err != nil {
			return nil, err
		}
	}
	if err := checkIcons(icons); err != nil {
		return nil, fmt.Errorf("%s.%w", p.place, err)
	}
	return icons, nil
}

// icon reads one icon. checkIcons checks what it holds.
func (p part) icon() (icon Icon, err error) {
	if err := p.only(iconMembers); err != nil {
		return icon, err
	}
	if _, err := p.required("src", jsontree.String, "say where the picture is"); err != nil {
		return icon, err
	}
	if icon.Src, err = p.text("src"); err != nil {
		return icon, err
	}
	if icon.MIMEType, err = p.text("mimeType"); err != nil {
		return icon, err
	}
	if icon.Theme, err = p.text("theme"); err != nil {
		return icon, err
	}
	if !p.has("sizes") {
		return icon, nil
	}
	sizes, err := p.array("sizes")
	if err != nil {
		return icon, err
	}
	icon.Sizes, err = sizes.texts()
	return icon, err
}

// texts returns copies of the elements of an array of strings.
func (p part) texts() ([]string, error) {
	list := make([]string, 0, p.value().Count)
	for i := p.value().First; i != 0; i = p.tree.Values[i].Next {
		v := &p.tree.Values[i]
		if v.Kind != jsontree.String {
			return nil, fmt.Errorf("%s[%d] must be a string, not %s", p.place, len(list), kindNames[v.Kind])
		}
		list = append(list, strings.Clone(v.Decoded()))
	}
	return list, nil
}
