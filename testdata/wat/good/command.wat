;; A plain WASI program: copies stdin to stdout in small pieces, and ends with the code that stands in the input's first byte
;; where that is a digit: 0 with proc_exit, 1 to 8 after a line on stderr, 9 without one. Anything else returns.
(module
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 64) "first line\n  the last line  \n\n \n")
  (data (i32.const 128) "\ff\fe")
  (global $code (mut i32) (i32.const -1))
  (func (export "_start")
    (loop $more
      ;; two buffers, of 3 and of 5 bytes, at 32 and 40
      (i32.store (i32.const 0) (i32.const 32))
      (i32.store (i32.const 4) (i32.const 3))
      (i32.store (i32.const 8) (i32.const 40))
      (i32.store (i32.const 12) (i32.const 5))
      (if (call $fd_read (i32.const 0) (i32.const 0) (i32.const 2) (i32.const 16)) (then unreachable))
      (if (i32.eq (global.get $code) (i32.const -1))
        (then (global.set $code (i32.sub (i32.load8_u (i32.const 32)) (i32.const 48)))))
      (if (i32.load (i32.const 16))
        (then
          (if (i32.lt_u (i32.load (i32.const 16)) (i32.const 3))
            (then (i32.store (i32.const 4) (i32.load (i32.const 16)))))
          (i32.store (i32.const 12) (i32.sub (i32.load (i32.const 16)) (i32.load (i32.const 4))))
          (if (call $fd_write (i32.const 1) (i32.const 0) (i32.const 2) (i32.const 20)) (then unreachable))
          (if (i32.ne (i32.load (i32.const 16)) (i32.load (i32.const 20))) (then unreachable))
          (br $more))))
    (if (i32.gt_u (global.get $code) (i32.const 9)) (then return))
    (if (i32.and (i32.ge_u (global.get $code) (i32.const 1)) (i32.le_u (global.get $code) (i32.const 8)))
      (then
        (i32.store (i32.const 0) (i32.const 64))
        (i32.store (i32.const 4) (i32.const 32))
        (drop (call $fd_write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 20)))))
    (call $proc_exit (global.get $code))))
