package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/runtime/instrument"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
)

// An offer is the functions that an engine has for guests. wazero finds host modules by name, so each of its runtimes has all functions. What a
// program may import is checked each time it is loaded, even if its code is loaded already.
type offer struct {
	sets  []*hostcall.Set
	funcs map[[2]string]*hostFunc // functions by module and name
}

// modules returns the import modules of the sets.
func (o *offer) modules() []string {
	names := make([]string, len(o.sets))
	for i, set := range o.sets {
		names[i] = set.Module
	}
	return names
}

// A hostFunc is a function of an offer.
type hostFunc struct {
	hostcall.Function
	set      int // its number in the offer
	declared wasmbin.FuncType
	narrow   []int // which parameters are i32
}

// Call implements wazero's interface. wazero stores an i32 parameter in the lower half of its element of the stack only, and the upper half may still
// hold an earlier value: Call clears it.
func (f *hostFunc) Call(ctx context.Context, _ api.Module, stack []uint64) {
	for _, i := range f.narrow {
		stack[i] = uint64(uint32(stack[i]))
	}
	ctx.(*call).abi.Invoke(&f.Function, f.set, stack)
}

// newOffer returns an offer with the functions of all sets.
func newOffer(sets []*hostcall.Set) (*offer, error) {
	o := &offer{sets: sets, funcs: map[[2]string]*hostFunc{}}
	for i, set := range sets {
		if set.Module == instrument.MeterModule || o.number(set.Module) != i {
			return nil, fmt.Errorf("the import module %q is offered twice", set.Module)
		}
		for _, f := range set.Functions {
			key := [2]string{set.Module, f.Name}
			if o.funcs[key] != nil {
				return nil, fmt.Errorf("the function %q.%q is offered twice", set.Module, f.Name)
			}
			params, known := valueTypes(f.Params)
			results, also := valueTypes(f.Results)
			if !known || !also {
				return nil, fmt.Errorf("the function %q.%q is offered with the type %q to %q: the letters are i, I and F", set.Module, f.Name, f.Params, f.Results)
			}
			if f.Cost == 0 {
				f.Cost = hostcall.CallCost
			}
			own := &hostFunc{Function: f, set: i, declared: wasmbin.FuncType{Params: params, Results: results}}
			for n, param := range params {
				if param == wasmbin.I32 {
					own.narrow = append(own.narrow, n)
				}
			}
			o.funcs[key] = own
		}
	}
	return o, nil
}

// valueTypes returns the types that the letters stand for.
func valueTypes(letters string) (types []wasmbin.ValueType, ok bool) {
	for _, letter := range letters {
		switch letter {
		case 'i':
			types = append(types, wasmbin.I32)
		case 'I':
			types = append(types, wasmbin.I64)
		case 'F':
			types = append(types, wasmbin.F64)
		default:
			return nil, false
		}
	}
	return types, true
}

// number returns the number of the set with that module, or -1.
func (o *offer) number(module string) int {
	return slices.IndexFunc(o.sets, func(s *hostcall.Set) bool { return s.Module == module })
}

// furnish adds the functions of the offer to a runtime, and those that only rewritten modules can import.
func (o *offer) furnish(ctx context.Context, r wazero.Runtime) error {
	i32 := []api.ValueType{api.ValueTypeI32}
	meter := r.NewHostModuleBuilder(instrument.MeterModule).
		NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(refill), i32, i32).Export(instrument.RefillFunc).
		NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(overflow), i32, i32).Export(instrument.OverflowFunc)
	if _, err := meter.Instantiate(ctx); err != nil {
		return fmt.Errorf("offer metering: %w", err)
	}
	for _, set := range o.sets {
		b := r.NewHostModuleBuilder(set.Module)
		for i := range set.Functions {
			f := o.funcs[[2]string{set.Module, set.Functions[i].Name}]
			b.NewFunctionBuilder().WithGoModuleFunction(f, wazeroTypes(f.declared.Params), wazeroTypes(f.declared.Results)).WithName(f.Name).Export(f.Name)
		}
		if _, err := b.Instantiate(ctx); err != nil {
			return fmt.Errorf("offer %s: %w", set.Module, err)
		}
	}
	return nil
}

func wazeroTypes(types []wasmbin.ValueType) []api.ValueType {
	list := make([]api.ValueType, len(types))
	for i, t := range types {
		list[i] = api.ValueType(t)
	}
	return list
}

// maxImports bounds the imports of a module: each costs every instance something, and a module can import the same function many times.
const maxImports = 1000

// check returns an error for an import that the module may not have. from are the import modules that it may use.
func (o *offer) check(m *wasmbin.Module, from []string) error {
	imports := m.Imports()
	if len(imports) > maxImports {
		return fmt.Errorf("the module has %d imports; the limit is %d", len(imports), maxImports)
	}
	for _, module := range from {
		if o.number(module) < 0 {
			return fmt.Errorf("the engine has no functions for the import module %q", module)
		}
	}
	for _, i := range imports {
		name := func() string { return fmt.Sprintf("%.80q.%.80q", i.Module, i.Name) }
		if i.Kind != wasmbin.KindFunction {
			if i.Kind == wasmbin.KindMemory {
				return fmt.Errorf("the memory is imported, from %s: a tool must have its own memory; link without --import-memory", name())
			}
			return fmt.Errorf("the %s %s is imported: only functions can be imported", i.Kind, name())
		}
		f := o.funcs[[2]string{i.Module, i.Name}]
		if f == nil || !slices.Contains(from, i.Module) {
			return fmt.Errorf("the import %s is not offered: %s", name(), o.describe(i.Module, from))
		}
		if want := f.declared.String(); i.Type.String() != want {
			return fmt.Errorf("the import %s is declared as %s, but offered as %s: correct the declaration", name(), i.Type, want)
		}
	}
	return nil
}

// describe says what can be imported from those modules, for an author who tried module.
func (o *offer) describe(module string, from []string) string {
	if slices.Contains(from, module) {
		var names []string
		for _, f := range o.sets[o.number(module)].Functions {
			names = append(names, f.Name)
		}
		slices.Sort(names)
		return fmt.Sprintf("%s has %s", module, strings.Join(names, ", "))
	}
	var targets []string
	for _, offered := range from {
		if target := o.sets[o.number(offered)].Target; target != "" {
			targets = append(targets, target)
		}
	}
	hint := ""
	if len(targets) > 0 {
		hint = fmt.Sprintf(" (%s)", strings.Join(targets, "; "))
	}
	switch n := len(from); n {
	case 0:
		return "nothing is"
	case 1:
		return fmt.Sprintf("the module %s is; build for it%s", from[0], hint)
	default:
		return fmt.Sprintf("the modules %s and %s are; build for one of them%s", strings.Join(from[:n-1], ", "), from[n-1], hint)
	}
}

// granted returns the values of the grants, indexed by the numbers of the sets, and whether a granted set has functions that call tools.
func (o *offer) granted(grants []hostcall.Grant) (values []any, nests bool) {
	for _, g := range grants {
		i := o.number(g.Module)
		if i < 0 {
			continue // nothing can be imported from that module
		}
		for len(values) <= i {
			values = append(values, nil)
		}
		values[i] = g.Value
		nests = nests || o.sets[i].Nests && g.Value != nil
	}
	return values, nests
}
