;; Counts its calls in state that can't be reset in place, each in a tool of its own: 0 a table that is set, 1 a table that grows, 2 a
;; global v128, 3 a data segment that is dropped, 4 an element segment that is dropped, 5 a global funcref. A sandbox that is new counts 1.
(module
  (import "toolsrv_v1" "output_write" (func $output_write (param i32 i32)))
  (memory (export "memory") 1)
  (table $t 1 10 funcref)
  (elem $e funcref (ref.func $answer))
  (data $d "x")
  (global $v (mut v128) (v128.const i32x4 0 0 0 0))
  (global $f (mut funcref) (ref.null func))
  (global $started (mut i32) (i32.const 0))
  (func $start (global.set $started (i32.add (global.get $started) (i32.const 48))))
  (start $start)
  (func $answer (param $n i32)
    (i32.store8 (i32.const 16) (i32.add (global.get $started) (local.get $n)))
    (call $output_write (i32.const 16) (i32.const 1)))
  (func (export "toolsrv_call") (param $tool i32) (result i32)
    (if (i32.eq (local.get $tool) (i32.const 0)) (then
      (call $answer (select (i32.const 1) (i32.const 2) (ref.is_null (table.get $t (i32.const 0)))))
      (table.set $t (i32.const 0) (ref.func $answer))))
    (if (i32.eq (local.get $tool) (i32.const 1)) (then
      (call $answer (table.grow $t (ref.null func) (i32.const 1)))))
    (if (i32.eq (local.get $tool) (i32.const 2)) (then
      (global.set $v (i32x4.add (global.get $v) (v128.const i32x4 1 1 1 1)))
      (call $answer (i32x4.extract_lane 3 (global.get $v)))))
    (if (i32.eq (local.get $tool) (i32.const 3)) (then
      (memory.init $d (i32.const 0) (i32.const 0) (i32.const 1))
      (data.drop $d)
      (call $answer (i32.const 1))))
    (if (i32.eq (local.get $tool) (i32.const 4)) (then
      (table.init $t $e (i32.const 0) (i32.const 0) (i32.const 1))
      (elem.drop $e)
      (call $answer (i32.const 1))))
    (if (i32.eq (local.get $tool) (i32.const 5)) (then
      (call $answer (select (i32.const 1) (i32.const 2) (ref.is_null (global.get $f))))
      (global.set $f (ref.func $answer))))
    (i32.const 0)))
