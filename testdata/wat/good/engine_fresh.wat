;; An engine that keeps a function in a table which _initialize fills: no snapshot of its memory has that, so it starts anew for
;; every call, and answers with the bundle's first digit.
(module
  (import "toolsrv_v1" "output_write" (func $output_write (param i32 i32)))
  (memory (export "memory") 2)
  (table 1 funcref)
  (type $answer (func (result i32)))
  (global (export "toolsrv_bundle") i32 (i32.const 1024))
  (func $one (result i32) (i32.load8_u (i32.const 1024)))
  (elem declare func $one)
  (func (export "_initialize") (table.set (i32.const 0) (ref.func $one)))
  (func (export "toolsrv_call") (param i32) (result i32)
    (i32.store8 (i32.const 0) (call_indirect (type $answer) (i32.const 0)))
    (call $output_write (i32.const 0) (i32.const 1))
    (i32.const 0)))
