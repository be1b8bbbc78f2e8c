package admin

import (
	"context"
	"errors"

	"github.com/toolsrv/toolsrv/internal/capability/kv"
	"github.com/toolsrv/toolsrv/internal/personal"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// KeptArguments are the arguments of the operation kv list.
type KeptArguments struct {
	After string `json:"after,omitempty" description:"List only what comes after this place: pass the value of more from the previous answer." maxLength:"1024"`
}

// ErasedArguments are the arguments of the operation kv erase.
type ErasedArguments struct {
	Principal string `json:"principal" description:"Whose values are erased, such as issued+ann." minLength:"1" maxLength:"200"`
}

// A Kept is the values that tools keep for one caller in one namespace.
type Kept struct {
	Principal string `json:"principal" description:"The caller whose values they are, such as issued+ann."`
	Namespace string `json:"namespace" description:"The namespace of the tools that keep them."`
	Entries   int64  `json:"entries" description:"How many values there are."`
	Bytes     int64  `json:"bytes" description:"How many bytes of the grant's size they take up."`
}

// AllKept is the values that tools keep for each caller separately.
type AllKept struct {
	Kept []Kept `json:"kept" description:"The kept values by caller and namespace: at most 1,000 such pairs."`
	More string `json:"more,omitempty" description:"The place to pass as after, if there is more to list."`
}

// kvOperations are the operations on the values that tools keep for each caller separately.
func kvOperations() []Operation {
	return []Operation{
		Looks("kv list", "List what tools keep for each caller separately", func(ctx context.Context, r *Request, in KeptArguments) (AllKept, error) {
			all := AllKept{Kept: []Kept{}}
			store := r.Service.State.Store()
			if store == nil {
				return all, nil
			}
			kept, more, err := kv.List(ctx, store, in.After, 0)
			if err != nil {
				return all, keptError(err)
			}
			all.Kept, all.More = keptOf(kept), more
			return all, nil
		}),
		Changes("kv erase", "Erase what tools keep for one caller", func(ctx context.Context, r *Request, in ErasedArguments) (all AllKept, err error) {
			id, err := personal.Parse(in.Principal)
			if err != nil {
				return all, invalid("The principal is not valid: " + err.Error() + "; `toolsrv kv list` lists them all")
			}
			store := r.Service.State.Store()
			if store == nil {
				return AllKept{Kept: []Kept{}}, nil
			}
			var erased []kv.Kept
			err = r.change(ctx, string(id), nil, in, func(ctx context.Context) (err error) {
				erased, err = kv.Erase(ctx, store, id)
				return err
			})
			all.Kept = keptOf(erased)
			return all, keptError(err)
		}),
	}
}

func keptOf(kept []kv.Kept) []Kept {
	all := []Kept{}
	for _, k := range kept {
		all = append(all, Kept{string(k.Of), k.Namespace, k.Usage.Entries, k.Usage.Bytes})
	}
	return all
}

func keptError(err error) error {
	if errors.Is(err, state.ErrUnavailable) {
		return &wasmtools.Error{Code: wasmtools.CodeNotReady, Message: "Not everything was erased: " + err.Error(), Err: err}
	}
	return err
}
