;; Imports its memory.
(module
  (import "env" "memory" (memory 1))
  (export "memory" (memory 0))
  (func (export "toolsrv_call") (param i32) (result i32) (i32.const 0)))
