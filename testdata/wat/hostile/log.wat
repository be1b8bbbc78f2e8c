;; Writes log lines for ever, or too long ones: tool 0 with log, 1 on stdout, 2 on stderr without a line's end, 3 one
;; line of 1 MiB and at levels that there are none, then answers; 4 writes 150 lines and answers; 5 writes 150 lines of 4 KiB of NUL and answers.
(module
  (import "toolsrv_v1" "log" (func $log (param i32 i32 i32)))
  (import "toolsrv_v1" "output_write" (func $output_write (param i32 i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 64)
  (data (i32.const 0) "{}line\n")
  (func $write (param $fd i32) (param $ptr i32) (param $len i32)
    (i32.store (i32.const 64) (local.get $ptr))
    (i32.store (i32.const 68) (local.get $len))
    (if (call $fd_write (local.get $fd) (i32.const 64) (i32.const 1) (i32.const 72)) (then unreachable)))
  (func (export "toolsrv_call") (param $tool i32) (result i32)
    (local $n i32)
    (memory.fill (i32.const 1024) (i32.const 0xc3) (i32.const 1048576))
    (if (i32.eq (local.get $tool) (i32.const 3))
      (then
        (call $log (i32.const 99) (i32.const 1024) (i32.const 1048576))
        (call $log (i32.const -99) (i32.const 2) (i32.const 4)))
      (else (loop $again
        (if (i32.eq (local.get $tool) (i32.const 0)) (then (call $log (i32.const 1) (i32.const 2) (i32.const 4))))
        (if (i32.eq (local.get $tool) (i32.const 1)) (then (call $write (i32.const 1) (i32.const 2) (i32.const 5))))
        (if (i32.eq (local.get $tool) (i32.const 2)) (then (call $write (i32.const 2) (i32.const 1024) (i32.const 1048576))))
        (if (i32.eq (local.get $tool) (i32.const 4)) (then
          (call $log (i32.const 2) (i32.const 2) (i32.const 4))
          (local.set $n (i32.add (local.get $n) (i32.const 1)))))
        (if (i32.eq (local.get $tool) (i32.const 5)) (then
          (call $log (i32.const 1) (i32.const 0x180000) (i32.const 4096))
          (local.set $n (i32.add (local.get $n) (i32.const 1)))))
        (br_if $again (i32.lt_u (local.get $n) (i32.const 150))))))
    (call $output_write (i32.const 0) (i32.const 2))
    (i32.const 0)))
