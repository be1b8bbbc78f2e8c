;; Has no memory at first. It takes a page when it is started and one when it is warmed, and leaves its mark in each. A call answers
;; with 1 where it finds both marks, nothing else and no third page, and then takes all that it is given, and marks that. Describing
;; itself does the same.
(module
  (import "toolsrv_v1" "output_write" (func $output_write (param i32 i32)))
  (memory (export "memory") 0 16)
  (func (export "_initialize")
    (if (memory.grow (i32.const 1)) (then unreachable))
    (i32.store8 (i32.const 100) (i32.const 1)))
  (func (export "toolsrv_warm")
    (if (i32.ne (memory.grow (i32.const 1)) (i32.const 1)) (then unreachable))
    (i32.store8 (i32.const 65636) (i32.const 1)))
  (func (export "toolsrv_describe") (result i32) (call $call (i32.const 0)))
  (func $call (export "toolsrv_call") (param i32) (result i32)
    (local $ok i32) (local $at i32)
    (local.set $ok (i32.and
      (i32.eq (memory.size) (i32.const 2))
      (i32.and (i32.load8_u (i32.const 100)) (i32.load8_u (i32.const 65636)))))
    (loop $more
      (if (i32.ne (memory.grow (i32.const 1)) (i32.const -1)) (then (br $more))))
    (loop $next
      (if (i32.load8_u (local.get $at)) (then
        (if (i32.and (i32.ne (local.get $at) (i32.const 100)) (i32.ne (local.get $at) (i32.const 65636)))
          (then (local.set $ok (i32.const 0))))))
      (i32.store8 (local.get $at) (i32.const 1))
      (local.set $at (i32.add (local.get $at) (i32.const 4)))
      (br_if $next (i32.lt_u (local.get $at) (i32.shl (memory.size) (i32.const 16)))))
    (i32.store8 (i32.const 0) (i32.add (i32.const 48) (local.get $ok)))
    (call $output_write (i32.const 0) (i32.const 1))
    (i32.const 0)))
