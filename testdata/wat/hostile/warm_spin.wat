;; Never ends at its warm.
(module
  (memory (export "memory") 1)
  (func (export "toolsrv_warm") (loop $l (br $l)))
  (func (export "toolsrv_call") (param i32) (result i32) (i32.const 0)))
