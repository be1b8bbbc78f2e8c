;; Takes memory and keeps it for a while. Tool n grows its one page by n MiB, writes each page of the system's, computes for some
;; ten milliseconds, and answers 1, or 0 where it was refused memory. Tool 1000 does the same without growing.
(module
  (import "toolsrv_v1" "output_write" (func $output_write (param i32 i32)))
  (memory (export "memory") 1 65535)
  (data (i32.const 0) "10")
  (func (export "toolsrv_call") (param $mib i32) (result i32)
    (local $at i32) (local $n i32)
    (if (i32.eq (local.get $mib) (i32.const 1000)) (then (local.set $mib (i32.const 0))))
    (if (i32.eq (memory.grow (i32.shl (local.get $mib) (i32.const 4))) (i32.const -1))
      (then (call $output_write (i32.const 1) (i32.const 1)) (return (i32.const 0))))
    (local.set $at (i32.const 65536))
    (block $full (loop $touch
      (br_if $full (i32.ge_u (local.get $at) (i32.shl (memory.size) (i32.const 16))))
      (i32.store8 (local.get $at) (i32.const 1))
      (local.set $at (i32.add (local.get $at) (i32.const 4096)))
      (br $touch)))
    (local.set $n (i32.const 10000000))
    (loop $compute
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if $compute (local.get $n)))
    (call $output_write (i32.const 0) (i32.const 1))
    (i32.const 0)))
