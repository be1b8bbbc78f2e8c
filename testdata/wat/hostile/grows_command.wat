;; A plain WASI program that takes a page, answers with 1 where it holds nothing, and else with 0, marks it, and ends with proc_exit.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    (local $sum i32) (local $at i32)
    (if (i32.ne (memory.grow (i32.const 1)) (i32.const 1)) (then unreachable))
    (local.set $at (i32.const 65536))
    (loop $next
      (local.set $sum (i32.or (local.get $sum) (i32.load (local.get $at))))
      (i32.store (local.get $at) (i32.const -1))
      (local.set $at (i32.add (local.get $at) (i32.const 4)))
      (br_if $next (i32.lt_u (local.get $at) (i32.const 131072))))
    (i32.store8 (i32.const 0) (i32.add (i32.const 48) (i32.eqz (local.get $sum))))
    (i32.store (i32.const 16) (i32.const 0))
    (i32.store (i32.const 20) (i32.const 1))
    (drop (call $fd_write (i32.const 1) (i32.const 16) (i32.const 1) (i32.const 8)))
    (call $proc_exit (i32.const 0))))
