package sbom

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// cycloneDX writes a document as CycloneDX 1.6.
func cycloneDX(d *document) ([]byte, error) {
	bom := cdx.NewBOM()
	bom.SerialNumber = serial(d.name + " " + d.release.Commit)
	application := component(d.program, cdx.ComponentTypeApplication, "")
	components := *application.Components
	application.Components = nil
	bom.Metadata = &cdx.Metadata{
		Timestamp:  d.release.Time.Format(time.RFC3339),
		Lifecycles: &[]cdx.Lifecycle{{Phase: cdx.LifecyclePhaseBuild}},
		Tools:      &cdx.ToolsChoice{Components: &[]cdx.Component{{Type: cdx.ComponentTypeApplication, Name: "toolsrv dist", Version: d.release.Version}}},
		Component:  &application,
	}
	bom.Components = &components
	dependencies := []cdx.Dependency{depends(application.BOMRef, components)}
	for _, c := range components {
		if c.Components != nil {
			dependencies = append(dependencies, depends(c.BOMRef, *c.Components))
		}
	}
	bom.Dependencies = &dependencies
	var out bytes.Buffer
	encoder := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON)
	encoder.SetPretty(true)
	err := encoder.EncodeVersion(bom, cdx.SpecVersion1_6)
	return out.Bytes(), err
}

// component returns a part with its own parts. The same part may be in several engines, so its reference begins with its engine's.
func component(p Part, kind cdx.ComponentType, within string) cdx.Component {
	c := cdx.Component{BOMRef: within + p.Name + "@" + p.Version, Type: kind, Name: p.Name, Version: p.Version, PackageURL: p.URL}
	if p.SHA256 != "" {
		c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: p.SHA256}}
	}
	switch license := p.License; {
	case !isExpression(license):
		c.Licenses = &cdx.Licenses{{License: &cdx.License{Name: license}}}
	default:
		c.Licenses = &cdx.Licenses{{Expression: license}}
	}
	if len(p.Parts) > 0 {
		c.Components = &[]cdx.Component{}
		for _, part := range p.Parts {
			below := c.BOMRef + "/"
			if kind == cdx.ComponentTypeApplication {
				below = ""
			}
			*c.Components = append(*c.Components, component(part, cdx.ComponentTypeLibrary, below))
		}
	}
	return c
}

func depends(on string, components []cdx.Component) cdx.Dependency {
	var refs []string
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	return cdx.Dependency{Ref: on, Dependencies: &refs}
}

// serial returns a UUID of version 8 that is made from a name, so that the same commit has the same UUID.
func serial(name string) string {
	id := sha256.Sum256([]byte("https://github.com/toolsrv/toolsrv " + name))
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:16])
}
