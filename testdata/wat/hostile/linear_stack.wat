;; A stack in the memory as LLVM keeps it, its pointer the first global, without a name. Each tool breaks, some for want of it.
(module
  (import "toolsrv_v1" "input_read" (func (param i32)))
  (memory (export "memory") 2)
  (global (mut i32) (i32.const 65536))
  (data (i32.const 65536) "behind the stack")

  (func (param i32) (result i32)
    (local i32)
    (global.set 0 (local.tee 1 (i32.sub (global.get 0) (i32.const 1024))))
    (i32.store (local.get 1) (local.get 0))
    (drop (call 1 (local.get 0)))
    (global.set 0 (i32.add (local.get 1) (i32.const 1024)))
    (i32.load (local.get 1)))

  (func (export "toolsrv_call") (param i32) (result i32)
    (block (block (block (block (block (block (block (block
      (br_table 0 1 2 3 4 5 6 7 (local.get 0)))
    ;; 0: calls itself without end
      (return (call 1 (i32.const 1))))
    ;; 1: hands a place in a large frame to the host
      (global.set 0 (i32.sub (global.get 0) (i32.const 0x100000)))
      (call 0 (global.get 0))
      (return (i32.const 0)))
    ;; 2: a function that calls nothing uses what is below the pointer
      (global.set 0 (i32.const 64))
      (return (i32.load (i32.sub (global.get 0) (i32.const 112)))))
    ;; 3: reads outside of the memory, with some of the stack in use
      (global.set 0 (i32.const 1024))
      (return (i32.load (i32.const -16))))
    ;; 4: gives up
      (global.set 0 (i32.const 1024))
      unreachable)
    ;; 5: the same on a stack somewhere else in the memory
      (global.set 0 (i32.const 100000))
      unreachable)
    ;; 6: gives the host a place outside, with some of the stack in use
      (global.set 0 (i32.const 1024))
      (call 0 (i32.const -1))
      (return (i32.const 0)))
    ;; 7: computes on, without a stack
    (global.set 0 (i32.const -1024))
    (loop (br 0))
    unreachable))
