;; Tells the order in which its parts ran, as the number that they make together: 1234. What is written, or failed with, before the
;; call leaves no trace, and the input cannot be seen there.
(module
  (import "toolsrv_v1" "input_size" (func $input_size (result i32)))
  (import "toolsrv_v1" "input_read" (func $input_read (param i32)))
  (import "toolsrv_v1" "output_write" (func $output_write (param i32 i32)))
  (import "toolsrv_v1" "fail" (func $fail (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "\"early\"")
  (global $at (mut i32) (i32.const 0))
  (func $stage (param $digit i32)
    (i32.store8 (global.get $at) (i32.add (i32.const 48) (local.get $digit)))
    (global.set $at (i32.add (global.get $at) (i32.const 1))))
  (func $early
    (call $input_read (i32.const 0))
    (call $output_write (i32.const 16) (i32.const 7))
    (call $fail (i32.const 16) (i32.const 7))
    (if (call $input_size) (then (call $stage (i32.const 9)))))
  (func $start (call $stage (i32.const 1)) (call $early))
  (start $start)
  (func (export "_initialize") (call $stage (i32.const 2)) (call $early))
  (func (export "toolsrv_warm") (call $stage (i32.const 3)) (call $early))
  (func (export "toolsrv_describe") (result i32)
    (call $output_write (i32.const 0) (global.get $at))
    (i32.const 0))
  (func (export "toolsrv_call") (param i32) (result i32)
    (if (i32.eqz (local.get 0))
      (then
        (call $stage (i32.const 4))
        (call $output_write (i32.const 0) (global.get $at))))
    ;; tool 1 writes nothing, tool 2 says that it failed and not why
    (i32.eq (local.get 0) (i32.const 2))))
