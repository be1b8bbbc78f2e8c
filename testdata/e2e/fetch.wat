;; A module that sends a request and gives how many bytes it was answered, in a sandbox of one page. The arguments are
;; {"head":...}, byte for byte: the head of a request. Tests embed the manifest.
(module
  (import "toolsrv_v1" "input_size" (func $input_size (result i32)))
  (import "toolsrv_v1" "input_read" (func $input_read (param i32)))
  (import "toolsrv_v1" "output_write" (func $output_write (param i32 i32)))
  (import "toolsrv_v1" "fail" (func $fail (param i32 i32)))
  (import "toolsrv_http_v1" "send" (func $send (param i32 i32 i32 i32) (result i32)))
  (import "toolsrv_http_v1" "answer_read" (func $read (param i32)))
  (memory (export "memory") 1)
  (global $end (mut i32) (i32.const 1024))

  (func (export "toolsrv_call") (param i32) (result i32)
    (local $n i32)
    (call $input_read (i32.const 4096))
    (local.set $n (call $send (i32.const 4104) (i32.sub (call $input_size) (i32.const 9)) (i32.const 0) (i32.const 0)))
    (if (i32.lt_s (local.get $n) (i32.const 0))
      (then
        (call $read (i32.const 8192))
        (call $fail (i32.const 8192) (i32.sub (i32.const 0) (local.get $n)))
        (return (i32.const 1))))
    (call $digits (local.get $n))
    (call $output_write (i32.const 1024) (i32.sub (global.get $end) (i32.const 1024)))
    (i32.const 0))

  (func $digits (param $n i32)
    (if (i32.ge_u (local.get $n) (i32.const 10)) (then (call $digits (i32.div_u (local.get $n) (i32.const 10)))))
    (i32.store8 (global.get $end) (i32.add (i32.rem_u (local.get $n) (i32.const 10)) (i32.const 48)))
    (global.set $end (i32.add (global.get $end) (i32.const 1)))))
