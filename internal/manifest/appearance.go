package manifest

import (
	"fmt"
	"strings"

	"github.com/toolsrv/toolsrv/internal/jsontree"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// annotationMembers are the members of annotations, in the order in which they are best written.
var annotationMembers = []string{"readOnly", "destructive", "idempotent", "openWorld"}

// iconMembers are the members of an icon, in the same order.
var iconMembers = []string{"src", "mimeType", "sizes", "theme"}

// appearance reads and checks the members of a tool that clients show or act upon.
func (p part) appearance(t *Tool) (err error) {
	if t.Title, err = p.text("title"); err != nil {
		return err
	}
	if t.Annotations, err = p.annotations(); err != nil {
		return err
	}
	if t.Icons, err = p.icons(); err != nil {
		return err
	}
	shown := wasmtools.Tool{Title: t.Title, Annotations: t.Annotations, Icons: t.Icons}
	if err := shown.CheckAppearance(); err != nil {
		return fmt.Errorf("%s.%w", p.place, err)
	}
	return nil
}

// annotations reads a tool's annotations.
func (p part) annotations() (a wasmtools.Annotations, err error) {
	if !p.has("annotations") {
		return a, nil
	}
	object, err := p.required("annotations", jsontree.Object, "leave it out if there are none")
	if err != nil {
		return a, err
	}
	for _, name := range annotationMembers {
		if hint := name + "Hint"; object.has(hint) { // an annotation's name in the Model Context Protocol
			return a, fmt.Errorf("%s: unknown member; did you mean %q?", object.at(hint), name)
		}
	}
	if err := object.only(annotationMembers); err != nil {
		return a, err
	}
	for i, to := range []**bool{&a.ReadOnly, &a.Destructive, &a.Idempotent, &a.OpenWorld} {
		if *to, err = object.boolean(annotationMembers[i]); err != nil {
			return a, err
		}
	}
	return a, nil
}

// boolean returns the boolean member of that name, or nil if there is none.
func (p part) boolean(name string) (*bool, error) {
	if !p.has(name) {
		return nil, nil
	}
	member, err := p.required(name, jsontree.Bool, "leave it out if it is not known")
	if err != nil {
		return nil, err
	}
	return new(member.value().Text == "true"), nil
}

// icons reads a tool's icons.
func (p part) icons() ([]wasmtools.Icon, error) {
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
	icons := make([]wasmtools.Icon, len(list))
	for i, item := range list {
		if icons[i], err = item.icon(); err != nil {
			return nil, err
		}
	}
	return icons, nil
}

// icon reads one icon.
func (p part) icon() (icon wasmtools.Icon, err error) {
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
