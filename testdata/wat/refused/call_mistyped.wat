;; Has a toolsrv_call of another type.
(module
  (memory (export "memory") 1)
  (func (export "toolsrv_call") (param i64) (result i32) (i32.const 0)))
