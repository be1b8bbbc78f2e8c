package linuxpackage

import (
	"regexp"
	"strings"
)

// A version is semantic, such as 1.2.0, 1.2.0-rc.1, or 0.0.0-20260102150405-abcdefabcdef between tags. What follows a + is ignored when
// versions are compared. Each system writes and orders prereleases in its own way.

// parts returns the numbers of a version, and its prerelease part, which is "" for a release.
func parts(version string) (numbers, before string) {
	version, _, _ = strings.Cut(version, "+")
	numbers, before, _ = strings.Cut(version, "-")
	return numbers, before
}

// debVersion puts a ~ before a prerelease, since ~ sorts before the end of a version. A - would begin the package's revision.
func debVersion(version string) string {
	numbers, before := parts(version)
	if before == "" {
		return numbers
	}
	return numbers + "~" + strings.ReplaceAll(before, "-", ".")
}

// rpmVersion is debVersion, since rpm has adopted ~.
func rpmVersion(version string) string { return debVersion(version) }

// apkVersion writes a prerelease as one word of a fixed list and a number: rc.1 becomes _rc1, and a commit between tags _pre with its time.
func apkVersion(version string) string {
	numbers, before := parts(version)
	if before == "" {
		return numbers + "-r0"
	}
	word, number := "pre", ""
	if m := regexp.MustCompile(`^(alpha|beta|rc)\.?([0-9]*)$`).FindStringSubmatch(before); m != nil {
		word, number = m[1], m[2]
	} else if at := regexp.MustCompile(`[0-9]{14}`).FindString(before); at != "" {
		number = at
	}
	return numbers + "_" + word + number + "-r0"
}
