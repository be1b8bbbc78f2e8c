;; Exports something else as memory.
(module
  (memory 1)
  (func (export "memory"))
  (func (export "toolsrv_call") (param i32) (result i32) (i32.const 0)))
