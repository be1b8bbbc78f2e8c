;; Has nine tables.
(module
  (memory (export "memory") 1)
  (table 1 funcref)
  (table 1 funcref)
  (table 1 funcref)
  (table 1 funcref)
  (table 1 funcref)
  (table 1 funcref)
  (table 1 funcref)
  (table 1 funcref)
  (table 1 funcref)
  (func (export "toolsrv_call") (param i32) (result i32) (i32.const 0)))
