package schema_test

import (
	"errors"
	"fmt"

	"github.com/toolsrv/toolsrv/wasmtools/misfit"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

func ExampleSchema_Validate() {
	add := schema.MustCompile(`{
		"type": "object",
		"properties": {"a": {"type": "number"}, "b": {"type": "number", "default": 1}},
		"required": ["a"]
	}`)
	arguments, err := add.Validate([]byte(`{"a": 2}`))
	fmt.Println(string(arguments), err)

	_, err = add.Validate([]byte(`{"a": "two"}`))
	var e *misfit.Error
	if errors.As(err, &e) {
		for _, v := range e.Violations {
			fmt.Println(v.Type, v.Loc, v.Msg)
		}
	}
	// Output:
	// {"a": 2,"b":1} <nil>
	// float_type [body a] Input should be a valid number
}
