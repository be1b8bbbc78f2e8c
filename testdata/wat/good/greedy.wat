;; Takes four pages more when it is started, and makes do where they are refused; and counts to 100,000. It answers with the number of its
;; pages, as one digit.
(module
  (import "toolsrv_v1" "output_write" (func $output_write (param i32 i32)))
  (memory (export "memory") 1)
  (func (export "_initialize")
    (local $n i32)
    (drop (memory.grow (i32.const 4)))
    (loop $more
      (local.set $n (i32.add (local.get $n) (i32.const 1)))
      (br_if $more (i32.lt_u (local.get $n) (i32.const 100000)))))
  (func (export "toolsrv_call") (param $tool i32) (result i32)
    (i32.store8 (i32.const 0) (i32.add (i32.const 48) (memory.size)))
    (call $output_write (i32.const 0) (i32.const 1))
    (i32.const 0)))
