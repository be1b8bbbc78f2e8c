;; Has no memory at all until a call takes three pages. It ends itself where there is one before, and answers with 1 where they hold
;; nothing; tool 1 writes without taking any.
(module
  (import "toolsrv_v1" "output_write" (func $output_write (param i32 i32)))
  (memory (export "memory") 0)
  (func (export "toolsrv_call") (param $tool i32) (result i32)
    (local $sum i32) (local $at i32)
    (if (local.get $tool) (then (i32.store8 (i32.const 0) (i32.const 1))))
    (if (memory.grow (i32.const 3)) (then unreachable))
    (loop $next
      (local.set $sum (i32.or (local.get $sum) (i32.load (local.get $at))))
      (i32.store (local.get $at) (i32.const -1))
      (local.set $at (i32.add (local.get $at) (i32.const 4)))
      (br_if $next (i32.lt_u (local.get $at) (i32.const 196608))))
    (i32.store8 (i32.const 0) (i32.add (i32.const 48) (i32.eqz (local.get $sum))))
    (call $output_write (i32.const 0) (i32.const 1))
    (i32.const 0)))
