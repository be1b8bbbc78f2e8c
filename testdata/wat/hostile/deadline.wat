;; Asks for its deadline: tool 0 tells it, 1 tells what the start saw, 2 asks for ever, 3 goes on when the answer is 0.
(module
  (import "toolsrv_v1" "deadline" (func $deadline (result i64)))
  (import "toolsrv_v1" "output_write" (func $output_write (param i32 i32)))
  (memory (export "memory") 1)
  (global $seen (mut i64) (i64.const 7))
  (func (export "toolsrv_warm") (global.set $seen (call $deadline)))
  (func $tell (param $n i64) (local $at i32) (local $sign i32)
    (local.set $at (i32.const 64))
    (if (i64.lt_s (local.get $n) (i64.const 0))
      (then
        (local.set $sign (i32.const 1))
        (local.set $n (i64.sub (i64.const 0) (local.get $n)))))
    (loop $digit
      (local.set $at (i32.sub (local.get $at) (i32.const 1)))
      (i64.store8 (local.get $at) (i64.add (i64.const 48) (i64.rem_u (local.get $n) (i64.const 10))))
      (local.set $n (i64.div_u (local.get $n) (i64.const 10)))
      (br_if $digit (i64.ne (local.get $n) (i64.const 0))))
    (if (local.get $sign)
      (then
        (local.set $at (i32.sub (local.get $at) (i32.const 1)))
        (i32.store8 (local.get $at) (i32.const 45))))
    (call $output_write (local.get $at) (i32.sub (i32.const 64) (local.get $at))))
  (func (export "toolsrv_call") (param $tool i32) (result i32)
    (if (i32.eqz (local.get $tool)) (then (call $tell (call $deadline))))
    (if (i32.eq (local.get $tool) (i32.const 1)) (then (call $tell (global.get $seen))))
    (if (i32.eq (local.get $tool) (i32.const 2)) (then (loop $ask (drop (call $deadline)) (br $ask))))
    (if (i32.eq (local.get $tool) (i32.const 3))
      (then
        (loop $wait (br_if $wait (i64.ne (call $deadline) (i64.const 0))))
        (loop $on (br $on))))
    (i32.const 0)))
