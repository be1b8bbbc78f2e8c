;; Has a toolsrv_warm of another type.
(module
  (memory (export "memory") 1)
  (func (export "toolsrv_warm") (param i32))
  (func (export "toolsrv_call") (param i32) (result i32) (i32.const 0)))
