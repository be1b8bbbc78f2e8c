;; Breaks before it is called: its data lie outside its memory.
(module
  (memory (export "memory") 1)
  (data (i32.const 65530) "outside of it")
  (func (export "toolsrv_call") (param i32) (result i32) (i32.const 0)))
