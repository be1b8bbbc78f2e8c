;; Imports a function that the module does not have.
(module
  (import "toolsrv_v1" "open_file" (func))
  (memory (export "memory") 1)
  (func (export "toolsrv_call") (param i32) (result i32) (i32.const 0)))
