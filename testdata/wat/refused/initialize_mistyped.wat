;; Has an _initialize of another type.
(module
  (memory (export "memory") 1)
  (func (export "_initialize") (result i32) (i32.const 0))
  (func (export "toolsrv_call") (param i32) (result i32) (i32.const 0)))
