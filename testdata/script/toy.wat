;; A toy of an interpreter, with the parts that real ones have: a region for a bundle, its address, and the section that says what
;; it is. Its scripts are manifests: what entry 0 of the bundle holds is what it describes, and what entry 1 holds, or null, is the
;; answer to every call. A script that begins with "!" is one with an error, and what follows is the failure.
(module
  (@custom "toolsrv.engine" "{\"name\":\"toy\",\"version\":\"toy 1.0\",\"revision\":\"0123abcd\",\"capacity\":65536}")
  (import "toolsrv_v1" "output_write" (func $output_write (param i32 i32)))
  (import "toolsrv_v1" "fail" (func $fail (param i32 i32)))
  (memory (export "memory") 2)
  (global (export "toolsrv_bundle") i32 (i32.const 1024))
  (data (i32.const 0) "null")
  ;; begin returns where the entry at a place begins: behind its lengths and its name.
  (func $begin (param $entry i32) (result i32)
    (i32.add (i32.add (local.get $entry) (i32.const 8)) (i32.load (local.get $entry))))
  (func $size (param $entry i32) (result i32)
    (i32.load offset=4 (local.get $entry)))
  (func (export "_initialize"))
  (func (export "toolsrv_warm"))
  (func (export "toolsrv_describe") (result i32) (local $at i32)
    (local.set $at (call $begin (i32.const 1032)))
    (if (i32.eq (i32.load8_u (local.get $at)) (i32.const 33)) ;; !
      (then
        (call $fail (i32.add (local.get $at) (i32.const 1)) (i32.sub (call $size (i32.const 1032)) (i32.const 1)))
        (return (i32.const 1))))
    (call $output_write (local.get $at) (call $size (i32.const 1032)))
    (i32.const 0))
  (func (export "toolsrv_call") (param i32) (result i32) (local $second i32)
    (local.set $second (i32.add (call $begin (i32.const 1032)) (call $size (i32.const 1032))))
    (if (i32.gt_u (i32.load (i32.const 1028)) (i32.const 1))
      (then (call $output_write (call $begin (local.get $second)) (call $size (local.get $second))))
      (else (call $output_write (i32.const 0) (i32.const 4))))
    (i32.const 0)))
