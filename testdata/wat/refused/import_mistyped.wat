;; Imports a function with another type than it has.
(module
  (import "toolsrv_v1" "log" (func (param i64)))
  (memory (export "memory") 1)
  (func (export "toolsrv_call") (param i32) (result i32) (i32.const 0)))
