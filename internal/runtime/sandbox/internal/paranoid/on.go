//go:build paranoid

package paranoid

// On is true, because this was built with the tag paranoid.
const On = true
