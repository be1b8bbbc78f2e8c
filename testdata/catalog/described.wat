;; Answers like answer.wat, and describes itself by running, without a manifest section.
(module
  (import "toolsrv_v1" "output_write" (func $output_write (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\"v0000\"")
  (data (i32.const 16) "{\"abi\":1,\"tools\":[{\"name\":\"told\",\"description\":\"Tells of itself.\",\"parameters\":{\"type\":\"object\"}}]}")
  (func (export "toolsrv_call") (param i32) (result i32)
    (call $output_write (i32.const 0) (i32.const 7))
    (i32.const 0))
  (func (export "toolsrv_describe") (result i32)
    (call $output_write (i32.const 16) (i32.const 99))
    (i32.const 0)))
