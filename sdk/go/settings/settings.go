// Package settings reads the settings that the operator made for a module. The module declares a struct of them ([toolsrv.Needs]), from
// which their schema is derived as for arguments, and the host checks them against it:
//
//	type Settings struct {
//		Units string `json:"units" enum:"metric,imperial" default:"metric"`
//	}
//
//	var loaded = settings.Load[Settings]()
//
//	var module = toolsrv.Export(toolsrv.Module{Needs: toolsrv.Needs{Settings: Settings{}}, …})
//
//	func forecast(c *toolsrv.Call, in place) (weather, error) {
//		chosen, err := loaded.Get(c)
//		…
package settings

import (
	"encoding/json"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
	"github.com/toolsrv/toolsrv/sdk/go/internal/capability"
)

// Read returns the settings, with defaults for what the operator has not set. They are the settings that were in force when the call's sandbox was
// prepared. c may be nil in the initialisation of a package-level variable; it fails there where the module is only described, as when it
// is built, so use [Load]. The error is a [*toolsrv.Failure].
func Read[T any](c *toolsrv.Call) (made T, err error) {
	text, err := capability.Settings(c)
	if err != nil {
		return made, err
	}
	if err := json.Unmarshal(text, &made); err != nil {
		return made, &toolsrv.Failure{Code: "invalid", Message: "the settings don't fit: " + err.Error()}
	}
	return made, nil
}

// A Loaded holds settings that were read at the start of the module. They are in the snapshot that every call begins with, so that calls
// don't read them again. It is only read after that.
type Loaded[T any] struct {
	made *T
}

// Load reads the settings, in the initialisation of a package-level variable. Natively, where a test gives them to each call, it does
// nothing.
func Load[T any]() *Loaded[T] {
	l := new(Loaded[T])
	if made, err := Read[T](nil); err == nil {
		l.made = &made
	}
	return l
}

// Get returns the settings. If they could not be read at the start, it reads them now, and fails as [Read] does.
func (l *Loaded[T]) Get(c *toolsrv.Call) (T, error) {
	if l.made != nil {
		return *l.made, nil
	}
	return Read[T](c)
}
