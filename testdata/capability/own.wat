;; Acts for its caller. Tool 0 sends the request whose head the arguments are, and returns the body of the answer. Tool 1 keeps its arguments under the key
;; "key", and returns true; tool 2 returns what is kept there, or null. Tool 3 calls the tool own/send with its arguments, and returns the result or the
;; failure. Failures of the others are as the host has told them.
(module
  (import "toolsrv_v1" "input_size" (func $input_size (result i32)))
  (import "toolsrv_v1" "input_read" (func $input_read (param i32)))
  (import "toolsrv_v1" "output_write" (func $output_write (param i32 i32)))
  (import "toolsrv_v1" "fail" (func $fail (param i32 i32)))
  (import "toolsrv_http_v1" "send" (func $send (param i32 i32 i32 i32) (result i32)))
  (import "toolsrv_http_v1" "answer_read" (func $http_answer (param i32)))
  (import "toolsrv_kv_v1" "get" (func $get (param i32 i32) (result i32)))
  (import "toolsrv_kv_v1" "set" (func $set (param i32 i32 i32 i32 i64 i64) (result i32)))
  (import "toolsrv_kv_v1" "answer_read" (func $kv_answer (param i32)))
  (import "toolsrv_tools_v1" "call" (func $call (param i32 i32 i32 i32) (result i32)))
  (import "toolsrv_tools_v1" "answer_read" (func $tools_answer (param i32)))
  (memory (export "memory") 4)
  (data (i32.const 16) "true")
  (data (i32.const 32) "key")
  (data (i32.const 48) "null")
  (data (i32.const 64) "own/send")
  (func (export "toolsrv_call") (param $tool i32) (result i32)
    (local $n i32) (local $skip i32)
    (call $input_read (i32.const 65536))
    (if (i32.eq (local.get $tool) (i32.const 0))
      (then
        (local.set $n (call $send (i32.const 65536) (call $input_size) (i32.const 0) (i32.const 0)))
        (call $http_answer (i32.const 131072))
        (local.set $skip (i32.add (i32.const 4) (i32.load (i32.const 131072))))))
    (if (i32.eq (local.get $tool) (i32.const 1))
      (then
        (local.set $n (call $set (i32.const 32) (i32.const 3) (i32.const 65536) (call $input_size) (i64.const 0) (i64.const -1)))
        (call $kv_answer (i32.const 131072))))
    (if (i32.eq (local.get $tool) (i32.const 2))
      (then
        (local.set $n (call $get (i32.const 32) (i32.const 3)))
        (call $kv_answer (i32.const 131072))
        (local.set $skip (i32.const 16))))
    (if (i32.eq (local.get $tool) (i32.const 3))
      (then
        (local.set $n (call $call (i32.const 64) (i32.const 8) (i32.const 65536) (call $input_size)))
        (call $tools_answer (i32.const 131072))))
    (if (i32.and (i32.lt_s (local.get $n) (i32.const 0)) (i32.eq (local.get $tool) (i32.const 3)))
      (then
        (local.set $n (i32.sub (i32.const 0) (local.get $n)))))
    (if (i32.lt_s (local.get $n) (i32.const 0))
      (then
        (call $fail (i32.const 131072) (i32.sub (i32.const 0) (local.get $n)))
        (return (i32.const 1))))
    (if (i32.eq (local.get $tool) (i32.const 1))
      (then
        (call $output_write (i32.const 16) (i32.const 4))
        (return (i32.const 0))))
    (if (i32.eqz (local.get $n))
      (then
        (call $output_write (i32.const 48) (i32.const 4))
        (return (i32.const 0))))
    (call $output_write (i32.add (i32.const 131072) (local.get $skip)) (i32.sub (local.get $n) (local.get $skip)))
    (i32.const 0)))
