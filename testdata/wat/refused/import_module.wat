;; Imports from a module that is not offered.
(module
  (import "env" "abort" (func))
  (memory (export "memory") 1)
  (func (export "toolsrv_call") (param i32) (result i32) (i32.const 0)))
