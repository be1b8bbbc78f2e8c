;; Looks for what an earlier call left behind the memory's end. Tool 0 grows its one page by four and fills all five; 1 answers
;; with 1 where the memory has one page; 2 grows it by four, answers with 1 where they hold nothing, and fills all five; 3 counts, in
;; its answer, how often it can be grown by a page. The others read or write behind the one page, each in another way, and answer.
(module
  (import "toolsrv_v1" "input_read" (func $input_read (param i32)))
  (import "toolsrv_v1" "output_write" (func $output_write (param i32 i32)))
  (import "toolsrv_v1" "fail" (func $fail (param i32 i32)))
  (import "toolsrv_v1" "log" (func $log (param i32 i32 i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))
  (memory (export "memory") 1 10)
  (data $passive "passive")
  (data (i32.const 32) "\00\00\01\00\01\00\00\00") ;; a buffer of the byte behind the page
  (func $answer (param $n i32)
    (i32.store8 (i32.const 16) (i32.add (i32.const 48) (local.get $n)))
    (call $output_write (i32.const 16) (i32.const 1)))
  (func $fill (memory.fill (i32.const 0) (i32.const 0xaa) (i32.const 327680)))
  (func $blank (param $at i32) (param $end i32) (result i32)
    (local $sum v128)
    (loop $next
      (local.set $sum (v128.or (local.get $sum) (v128.load (local.get $at))))
      (local.set $at (i32.add (local.get $at) (i32.const 16)))
      (br_if $next (i32.lt_u (local.get $at) (local.get $end))))
    (i32.eqz (v128.any_true (local.get $sum))))
  (func (export "toolsrv_call") (param $tool i32) (result i32)
    (local $n i32)
    (block $14 (block $13 (block $12 (block $11 (block $10 (block $9 (block $8 (block $7 (block $6 (block $5 (block $4
    (block $3 (block $2 (block $1 (block $0
      (br_table $0 $1 $2 $3 $4 $5 $6 $7 $8 $9 $10 $11 $12 $13 $14 (local.get $tool)))
      (; 0 ;) (drop (memory.grow (i32.const 4))) (call $fill) (call $answer (i32.const 1)) (return (i32.const 0)))
      (; 1 ;) (call $answer (i32.eq (memory.size) (i32.const 1))) (return (i32.const 0)))
      (; 2 ;)
      (local.set $n (i32.and
        (i32.eq (memory.grow (i32.const 4)) (i32.const 1))
        (call $blank (i32.const 65536) (i32.const 327680))))
      (call $fill) (call $answer (local.get $n)) (return (i32.const 0)))
      (; 3 ;)
      (loop $more
        (if (i32.ne (memory.grow (i32.const 1)) (i32.const -1))
          (then (local.set $n (i32.add (local.get $n) (i32.const 1))) (br $more))))
      (call $answer (local.get $n)) (return (i32.const 0)))
      (; 4 ;) (i32.store (i32.const 0) (i32.load (i32.const 65533))) (call $answer (i32.const 0)) (return (i32.const 0)))
      (; 5 ;) (i32.store8 (i32.const 0) (i32.load8_u offset=65536 (i32.const 0))) (call $answer (i32.const 0)) (return (i32.const 0)))
      (; 6 ;) (v128.store (i32.const 0) (v128.load (i32.const 65521))) (call $answer (i32.const 0)) (return (i32.const 0)))
      (; 7 ;) (i64.store (i32.const 262144) (i64.const 1)) (call $answer (i32.const 0)) (return (i32.const 0)))
      (; 8 ;) (memory.copy (i32.const 0) (i32.const 65536) (i32.const 1)) (call $answer (i32.const 0)) (return (i32.const 0)))
      (; 9 ;) (memory.copy (i32.const 0) (i32.const 20000) (i32.const 65536)) (call $answer (i32.const 0)) (return (i32.const 0)))
      (; 10 ;) (memory.init $passive (i32.const 65533) (i32.const 0) (i32.const 4)) (call $answer (i32.const 0)) (return (i32.const 0)))
      (; 11 ;) (call $output_write (i32.const 65536) (i32.const 1)) (return (i32.const 0)))
      (; 12 ;) (call $input_read (i32.const 65535)) (call $answer (i32.const 0)) (return (i32.const 0)))
      (; 13 ;) (drop (call $fd_write (i32.const 1) (i32.const 32) (i32.const 1) (i32.const 0))) (call $answer (i32.const 0)) (return (i32.const 0)))
      (; 14 ;) (drop (call $random_get (i32.const 65535) (i32.const 2))) (call $answer (i32.const 0)) (i32.const 0)))
