;; Returns its settings, or the failure in place of them: tool 0 those that it read when it started, tool 1 those of the call.
(module
  (import "toolsrv_v1" "output_write" (func $output_write (param i32 i32)))
  (import "toolsrv_settings_v1" "read" (func $read (result i32)))
  (import "toolsrv_settings_v1" "answer_read" (func $answer_read (param i32)))
  (memory (export "memory") 2)
  (global $length (mut i32) (i32.const 0))
  (func $settings
    (local $n i32)
    (local.set $n (call $read))
    (call $answer_read (i32.const 4096))
    (global.set $length (select (local.get $n) (i32.sub (i32.const 0) (local.get $n)) (i32.ge_s (local.get $n) (i32.const 0)))))
  (func (export "_initialize") (call $settings))
  (func (export "toolsrv_call") (param $tool i32) (result i32)
    (if (i32.eq (local.get $tool) (i32.const 1)) (then (call $settings)))
    (call $output_write (i32.const 4096) (global.get $length))
    (i32.const 0)))
