;; Has a table of two million elements.
(module
  (memory (export "memory") 1)
  (table 2000000 funcref)
  (func (export "toolsrv_call") (param i32) (result i32) (i32.const 0)))
