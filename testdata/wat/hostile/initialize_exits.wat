;; Ends itself in _initialize.
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 1)
  (func (export "_initialize") (call $proc_exit (i32.const 0)))
  (func (export "toolsrv_call") (param i32) (result i32) (i32.const 0)))
