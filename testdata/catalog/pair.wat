;; Describes two tools, a and b, in this order, by running, without a manifest section.
(module
  (import "toolsrv_v1" "output_write" (func $output_write (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"abi\":1,\"tools\":[{\"name\":\"a\",\"description\":\"The first.\",\"parameters\":{\"type\":\"object\"}},{\"name\":\"b\",\"description\":\"The second.\",\"parameters\":{\"type\":\"object\"}}]}")
  (func (export "toolsrv_call") (param i32) (result i32)
    (call $output_write (i32.const 7) (i32.const 1))
    (i32.const 0))
  (func (export "toolsrv_describe") (result i32)
    (call $output_write (i32.const 0) (i32.const 162))
    (i32.const 0)))
