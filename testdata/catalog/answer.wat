;; Answers every call with the text "v0000", which tests overwrite in the binary to tell one version from another.
(module
  (import "toolsrv_v1" "output_write" (func $output_write (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\"v0000\"")
  (func (export "toolsrv_call") (param i32) (result i32)
    (call $output_write (i32.const 0) (i32.const 7))
    (i32.const 0)))
