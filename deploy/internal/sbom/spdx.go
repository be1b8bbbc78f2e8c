package sbom

import (
	"encoding/json"
	"regexp"
	"time"

	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// spdx writes a document as SPDX 2.3.
func spdx(d *document) ([]byte, error) {
	out := &v2_3.Document{
		SPDXVersion: v2_3.Version, DataLicense: v2_3.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: d.name,
		DocumentNamespace: "https://github.com/toolsrv/toolsrv/sbom/" + d.release.Commit + "/" + d.name,
		CreationInfo: &v2_3.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Organization", Creator: "toolsrv"}, {CreatorType: "Tool", Creator: "toolsrv-dist-" + d.release.Version}},
			Created:  d.release.Time.Format(time.RFC3339),
		},
	}
	add(out, d.program, "DOCUMENT", common.TypeRelationshipDescribe, "Package")
	content, err := json.MarshalIndent(out, "", "  ")
	return append(content, '\n'), err
}

// add adds a part with its own parts. Its identifier begins with its owner's, since several engines have the same part.
func add(out *v2_3.Document, p Part, in common.ElementID, relationship, prefix string) {
	id := common.ElementID(regexp.MustCompile(`[^a-zA-Z0-9.]+`).ReplaceAllString(prefix+"-"+p.Name+"-"+p.Version, "-"))
	pack := &v2_3.Package{
		PackageName: p.Name, PackageSPDXIdentifier: id, PackageVersion: p.Version, IsFilesAnalyzedTagPresent: true,
		PackageDownloadLocation: "NOASSERTION", PackageLicenseConcluded: "NOASSERTION", PackageLicenseDeclared: p.License, PackageCopyrightText: "NOASSERTION",
		PrimaryPackagePurpose: "LIBRARY",
	}
	if in == "DOCUMENT" {
		pack.PrimaryPackagePurpose = "APPLICATION"
	}
	if !isExpression(p.License) {
		pack.PackageLicenseDeclared, pack.PackageLicenseComments = "NOASSERTION", p.License
	}
	if p.SHA256 != "" {
		pack.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: p.SHA256}}
	}
	if p.URL != "" {
		pack.PackageExternalReferences = []*v2_3.PackageExternalReference{{Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: p.URL}}
	}
	out.Packages = append(out.Packages, pack)
	out.Relationships = append(out.Relationships, &v2_3.Relationship{
		RefA: common.MakeDocElementID("", string(in)), RefB: common.MakeDocElementID("", string(id)), Relationship: relationship,
	})
	below := string(id)
	if in == "DOCUMENT" {
		below = prefix
	}
	for _, part := range p.Parts {
		add(out, part, id, common.TypeRelationshipContains, below)
	}
}
