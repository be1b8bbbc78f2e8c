;; Has no memory.
(module
  (func (export "toolsrv_call") (param i32) (result i32) (i32.const 0)))
