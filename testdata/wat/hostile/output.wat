;; Each tool answers with something that is no answer; the test names them.
(module
  (import "toolsrv_v1" "output_write" (func $output_write (param i32 i32)))
  (memory (export "memory") 128)
  (data (i32.const 0) "{\"a\":")      ;; 5
  (data (i32.const 16) "\"\ff\"")      ;; 3
  (data (i32.const 32) "1 2")          ;; 3
  (data (i32.const 48) "NaN")          ;; 3
  (data (i32.const 64) "   ")          ;; 3
  (data (i32.const 80) "\"good\"")     ;; 6
  (func $fill (param $from i32) (param $n i32) (param $byte i32)
    (memory.fill (local.get $from) (local.get $byte) (local.get $n)))
  (func (export "toolsrv_call") (param $tool i32) (result i32)
    (block $done (block $return (block $huge (block $replaced (block $deep (block $blank (block $nan (block $two (block $utf8 (block $cut (block $empty (block $none
      (br_table $none $empty $cut $utf8 $two $nan $blank $deep $replaced $huge $return (local.get $tool)))
      ;; 0: no output at all
      (br $done))
      (call $output_write (i32.const 0) (i32.const 0)) (br $done))
      (call $output_write (i32.const 0) (i32.const 5)) (br $done))
      (call $output_write (i32.const 16) (i32.const 3)) (br $done))
      (call $output_write (i32.const 32) (i32.const 3)) (br $done))
      (call $output_write (i32.const 48) (i32.const 3)) (br $done))
      (call $output_write (i32.const 64) (i32.const 3)) (br $done))
      ;; 7: 2,000 levels
      (call $fill (i32.const 1024) (i32.const 2000) (i32.const 91))
      (call $fill (i32.const 3024) (i32.const 2000) (i32.const 93))
      (call $output_write (i32.const 1024) (i32.const 4000)) (br $done))
      ;; 8: a bad one, then a good one: the last counts
      (call $output_write (i32.const 0) (i32.const 5))
      (call $output_write (i32.const 80) (i32.const 6)) (br $done))
      ;; 9: 5 MiB of digits
      (call $fill (i32.const 1024) (i32.const 5242880) (i32.const 49))
      (call $output_write (i32.const 1024) (i32.const 5242880)) (br $done))
      ;; 10 and more: a good one, but another number than 0 and 1 is returned
      (call $output_write (i32.const 80) (i32.const 6))
      (return (i32.sub (local.get $tool) (i32.const 11))))
    (i32.const 0)))
