;; Has a toolsrv_describe of another type.
(module
  (memory (export "memory") 1)
  (func (export "toolsrv_describe"))
  (func (export "toolsrv_call") (param i32) (result i32) (i32.const 0)))
