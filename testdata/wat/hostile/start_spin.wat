;; Never ends at its start.
(module
  (memory (export "memory") 1)
  (func $spin (loop $l (br $l)))
  (start $spin)
  (func (export "toolsrv_call") (param i32) (result i32) (i32.const 0)))
