;; A plain WASI program that reports its progress, which is a function beyond WASI, and writes 1 as its result.
(module
  (import "toolsrv_v1" "progress" (func $progress (param f64 f64 i32 i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\10\00\00\00\01\00\00\00")
  (data (i32.const 16) "1half")
  (func (export "_start")
    (call $progress (f64.const 0.5) (f64.const 1) (i32.const 17) (i32.const 4))
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
