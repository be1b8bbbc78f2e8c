;; Keeps values. The input is a key, without quotes. Tool 0 reads it, tool 1 reads it 1,000 times, tool 2 keeps 100 bytes under
;; it, and tool 3 does neither. The result is the last function's answer as a number; if that is below 0, the failure's JSON.
(module
  (import "toolsrv_v1" "input_size" (func $input_size (result i32)))
  (import "toolsrv_v1" "input_read" (func $input_read (param i32)))
  (import "toolsrv_v1" "output_write" (func $output_write (param i32 i32)))
  (import "toolsrv_kv_v1" "get" (func $get (param i32 i32) (result i32)))
  (import "toolsrv_kv_v1" "set" (func $set (param i32 i32 i32 i32 i64 i64) (result i32)))
  (import "toolsrv_kv_v1" "answer_read" (func $answer_read (param i32)))
  (memory (export "memory") 4)
  (func (export "toolsrv_call") (param $tool i32) (result i32)
    (local $n i32) (local $left i32) (local $at i32)
    (call $input_read (i32.const 1024))
    (if (i32.lt_u (local.get $tool) (i32.const 2))
      (then
        (local.set $left (select (i32.const 1000) (i32.const 1) (local.get $tool)))
        (loop $again
          (local.set $n (call $get (i32.const 1024) (call $input_size)))
          (call $answer_read (i32.const 65536))
          (br_if $again (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))))
    (if (i32.eq (local.get $tool) (i32.const 2))
      (then
        (local.set $n (call $set (i32.const 1024) (call $input_size) (i32.const 4096) (i32.const 100) (i64.const 0) (i64.const -1)))
        (call $answer_read (i32.const 65536))))
    (if (i32.lt_s (local.get $n) (i32.const 0))
      (then
        (call $output_write (i32.const 65536) (i32.sub (i32.const 0) (local.get $n)))
        (return (i32.const 0))))
    ;; the digits, from the last to the first
    (local.set $at (i32.const 64))
    (loop $digits
      (local.set $at (i32.sub (local.get $at) (i32.const 1)))
      (i32.store8 (local.get $at) (i32.add (i32.const 48) (i32.rem_u (local.get $n) (i32.const 10))))
      (br_if $digits (local.tee $n (i32.div_u (local.get $n) (i32.const 10)))))
    (call $output_write (local.get $at) (i32.sub (i32.const 64) (local.get $at)))
    (i32.const 0)))
