;; Takes more memory than it declares itself, at once and by more than there can be, and breaks for want of it.
(module
  (memory (export "memory") 1 2)
  (func (export "toolsrv_call") (param $tool i32) (result i32)
    (if (i32.ne (memory.grow (i32.const 65536)) (i32.const -1)) (then (return (i32.const 0))))
    (if (i32.eq (memory.grow (i32.const 2)) (i32.const -1)) (then unreachable))
    (i32.const 0)))
