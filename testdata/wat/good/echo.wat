;; Gives back what it gets. Tool 1 fails instead, with the input as the JSON of fail. Tool 2 counts its calls in memory,
;; in a global and in a table: a sandbox that is new always counts 1.
(module
  (import "toolsrv_v1" "input_size" (func $input_size (result i32)))
  (import "toolsrv_v1" "input_read" (func $input_read (param i32)))
  (import "toolsrv_v1" "output_write" (func $output_write (param i32 i32)))
  (import "toolsrv_v1" "fail" (func $fail (param i32 i32)))
  (memory (export "memory") 33)
  (table $t 1 funcref)
  (elem declare func $input_size)
  (global $calls (mut i32) (i32.const 0))
  (func (export "toolsrv_call") (param $tool i32) (result i32)
    (call $input_read (i32.const 65536))
    (if (i32.eq (local.get $tool) (i32.const 1))
      (then
        (call $fail (i32.const 65536) (call $input_size))
        (return (i32.const 1))))
    (if (i32.eq (local.get $tool) (i32.const 2))
      (then
        (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
        (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.const 1)))
        (if (ref.is_null (table.get $t (i32.const 0)))
          (then (table.set $t (i32.const 0) (ref.func $input_size)))
          (else (global.set $calls (i32.const 9))))
        ;; one digit: the larger of both
        (i32.store8 (i32.const 16)
          (i32.add (i32.const 48)
            (select (global.get $calls) (i32.load (i32.const 0))
              (i32.gt_u (global.get $calls) (i32.load (i32.const 0))))))
        (call $output_write (i32.const 16) (i32.const 1))
        (return (i32.const 0))))
    (call $output_write (i32.const 65536) (call $input_size))
    (i32.const 0)))
