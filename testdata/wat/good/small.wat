;; Gives back what it gets, like echo, and changes nothing that would keep it from being reset in place: the smallest tool. It
;; writes to its memory where a compiled guest would: its data, a stack and a heap.
(module
  (import "toolsrv_v1" "input_size" (func $input_size (result i32)))
  (import "toolsrv_v1" "input_read" (func $input_read (param i32)))
  (import "toolsrv_v1" "output_write" (func $output_write (param i32 i32)))
  (memory (export "memory") 19)
  (data (i32.const 1048576) "some data")
  (global $stack (mut i32) (i32.const 1048576))
  (func (export "toolsrv_call") (param $tool i32) (result i32)
    (local $frame i32)
    (local.set $frame (i32.sub (global.get $stack) (i32.const 64)))
    (global.set $stack (local.get $frame))
    (i32.store (local.get $frame) (call $input_size))
    (i32.store (i32.const 1048584) (i32.const 1))
    (call $input_read (i32.const 1049600))
    (call $output_write (i32.const 1049600) (i32.load (local.get $frame)))
    (global.set $stack (i32.add (local.get $frame) (i32.const 64)))
    (i32.const 0)))
