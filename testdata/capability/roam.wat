;; Goes where its arguments send it, which are {"go":"…"}: a letter says what to do, and the rest with what.
;;
;;   c, then the length of a path, as a character: 'A' is 1, then the path: call that tool, with what follows as its "go"
;;   h, then a URL: send a request there
;;   k: read the value of the key "who", which is JSON
;;   s, then the name of a secret: read it
;;   f, then a path: read that file, which is JSON
;;   o: nothing
;;
;; The result is the value, the content, or true, or the failure as the host has told it.
(module
  (import "toolsrv_v1" "input_size" (func $input_size (result i32)))
  (import "toolsrv_v1" "input_read" (func $input_read (param i32)))
  (import "toolsrv_v1" "output_write" (func $output_write (param i32 i32)))
  (import "toolsrv_v1" "fail" (func $fail (param i32 i32)))
  (import "toolsrv_http_v1" "send" (func $send (param i32 i32 i32 i32) (result i32)))
  (import "toolsrv_http_v1" "answer_read" (func $http_answer (param i32)))
  (import "toolsrv_kv_v1" "get" (func $get (param i32 i32) (result i32)))
  (import "toolsrv_kv_v1" "answer_read" (func $kv_answer (param i32)))
  (import "toolsrv_secrets_v1" "read" (func $secret (param i32 i32) (result i32)))
  (import "toolsrv_secrets_v1" "answer_read" (func $secret_answer (param i32)))
  (import "toolsrv_tools_v1" "call" (func $call (param i32 i32 i32 i32) (result i32)))
  (import "toolsrv_tools_v1" "answer_read" (func $tools_answer (param i32)))
  (import "wasi_snapshot_preview1" "path_open" (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 4)
  (data (i32.const 16) "true")
  (data (i32.const 32) "who")
  (data (i32.const 48) "{\22go\22:\22") ;; 7 bytes
  (data (i32.const 64) "{\22method\22:\22GET\22,\22url\22:\22") ;; 23 bytes
  (data (i32.const 96) "{\22code\22:\22none\22,\22message\22:\22There is none.\22}") ;; 42 bytes
  (data (i32.const 528) "\00\00\02\00\00\10\00\00") ;; where a file is read to: 4096 bytes at 131072
  ;; gives passes on an answer at 131072, of n bytes, or a failure of -n, without the first skip bytes.
  (func $gives (param $n i32) (param $skip i32) (result i32)
    (if (i32.lt_s (local.get $n) (i32.const 0))
      (then
        (call $fail (i32.const 131072) (i32.sub (i32.const 0) (local.get $n)))
        (return (i32.const 1))))
    (if (i32.le_s (local.get $n) (local.get $skip)) (then (return (call $none))))
    (call $output_write (i32.add (i32.const 131072) (local.get $skip)) (i32.sub (local.get $n) (local.get $skip)))
    (i32.const 0))
  (func $none (result i32)
    (call $fail (i32.const 96) (i32.const 42))
    (i32.const 1))
  (func (export "toolsrv_call") (param $tool i32) (result i32)
    (local $end i32) ;; of the arguments
    (local $last i32) ;; the quote behind "go"
    (local $do i32)
    (local $n i32)
    (local $rest i32)
    (call $input_read (i32.const 65536))
    (local.set $end (i32.add (i32.const 65536) (call $input_size)))
    (if (i32.lt_u (local.get $end) (i32.const 65546)) (then (return (call $none)))) ;; {"go":"k"}
    (local.set $last (i32.sub (local.get $end) (i32.const 2)))
    (local.set $do (i32.load8_u (i32.const 65543)))
    (if (i32.eq (local.get $do) (i32.const 99)) ;; c
      (then
        (local.set $n (i32.sub (i32.load8_u (i32.const 65544)) (i32.const 64)))
        (local.set $rest (i32.add (i32.const 65545) (local.get $n)))
        (memory.copy (i32.const 1024) (i32.const 65545) (local.get $n))
        (memory.copy (i32.sub (local.get $rest) (i32.const 7)) (i32.const 48) (i32.const 7))
        (local.set $rest (i32.sub (local.get $rest) (i32.const 7)))
        (local.set $n (call $call (i32.const 1024) (local.get $n) (local.get $rest) (i32.sub (local.get $end) (local.get $rest))))
        (call $tools_answer (i32.const 131072))
        (return (call $gives (local.get $n) (i32.const 0)))))
    (if (i32.eq (local.get $do) (i32.const 104)) ;; h
      (then
        (memory.copy (i32.const 65521) (i32.const 64) (i32.const 23))
        (local.set $n (call $send (i32.const 65521) (i32.sub (local.get $end) (i32.const 65521)) (i32.const 0) (i32.const 0)))
        (call $http_answer (i32.const 131072))
        (if (i32.lt_s (local.get $n) (i32.const 0)) (then (return (call $gives (local.get $n) (i32.const 0)))))
        (call $output_write (i32.const 16) (i32.const 4))
        (return (i32.const 0))))
    (if (i32.eq (local.get $do) (i32.const 107)) ;; k
      (then
        (local.set $n (call $get (i32.const 32) (i32.const 3)))
        (call $kv_answer (i32.const 131072))
        (return (call $gives (local.get $n) (i32.const 16)))))
    (if (i32.eq (local.get $do) (i32.const 115)) ;; s
      (then
        (local.set $n (call $secret (i32.const 65544) (i32.sub (local.get $last) (i32.const 65544))))
        (call $secret_answer (i32.const 131072))
        (if (i32.lt_s (local.get $n) (i32.const 0)) (then (return (call $gives (local.get $n) (i32.const 0)))))
        (call $output_write (i32.const 16) (i32.const 4)) ;; the host would take the secret out
        (return (i32.const 0))))
    (if (i32.eq (local.get $do) (i32.const 102)) ;; f
      (then
        (if (call $path_open (i32.const 3) (i32.const 0) (i32.const 65544) (i32.sub (local.get $last) (i32.const 65544)) (i32.const 0) (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 512))
          (then (return (call $none))))
        (if (call $fd_read (i32.load (i32.const 512)) (i32.const 528) (i32.const 1) (i32.const 520)) (then (return (call $none))))
        (return (call $gives (i32.load (i32.const 520)) (i32.const 0)))))
    (if (i32.eq (local.get $do) (i32.const 111)) ;; o
      (then
        (call $output_write (i32.const 16) (i32.const 4))
        (return (i32.const 0))))
    (call $none)))
