;; Keeps its memory to itself.
(module
  (memory 1)
  (func (export "toolsrv_call") (param i32) (result i32) (i32.const 0)))
