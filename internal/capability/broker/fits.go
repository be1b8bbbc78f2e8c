package broker

import (
	"errors"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
)

// fits returns an error if a need does not have the form of its kind. The program that read the manifest may not have known the kind, and so did
// not check that.
func fits(k *capability.Kind, n wasmtools.Need) error {
	switch {
	case k.Word != nil:
		if n.Words == nil {
			return errors.New("its need is not a list")
		}
		for _, word := range n.Words {
			if err := k.Word(word); err != nil {
				return err
			}
		}
	case k.Object != nil:
		if n.Object == nil {
			return errors.New("its need is not an object")
		}
		return k.Object(n.Object)
	case n.Words != nil || n.Object != nil:
		return errors.New("its need is not true")
	}
	return nil
}
