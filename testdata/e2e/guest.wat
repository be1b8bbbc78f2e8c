;; A module of many tools, one for each way in which a call can end. Tests embed the manifest; the order of the
;; functions in the table is that of its tools.
(module
  (import "toolsrv_v1" "input_size" (func $input_size (result i32)))
  (import "toolsrv_v1" "input_read" (func $input_read (param i32)))
  (import "toolsrv_v1" "output_write" (func $output_write (param i32 i32)))
  (import "toolsrv_v1" "fail" (func $fail (param i32 i32)))
  (import "toolsrv_v1" "log" (func $log (param i32 i32 i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll_oneoff (param i32 i32 i32 i32) (result i32)))

  (memory (export "memory") 2)
  (data (i32.const 0) "{\"message\":\"Only 2 are left.\",\"code\":\"out_of_stock\",\"status\":409,\"data\":{\"left\":2}}")
  (data (i32.const 128) "{\"message\":\"No such city.\"}")
  (data (i32.const 192) "this is no JSON")
  (data (i32.const 256) "waiting")
  (data (i32.const 288) "\"waited\"")
  ;; A subscription to the monotonic clock, 3 s from now.
  (data (i32.const 512) "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\01\00\00\00\00\00\00\00\00\5e\d0\b2\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")

  (type $tool (func (result i32)))
  (table funcref (elem $echo $refuse $reject $trap $spin $recurse $grow $garble $silent $wait))

  (func (export "toolsrv_call") (param $tool i32) (result i32)
    (call_indirect (type $tool) (local.get $tool)))

  (func $echo (result i32)
    (call $input_read (i32.const 4096))
    (call $output_write (i32.const 4096) (call $input_size))
    (i32.const 0))

  (func $refuse (result i32)
    (call $fail (i32.const 0) (i32.const 83))
    (i32.const 1))

  (func $reject (result i32)
    (call $fail (i32.const 128) (i32.const 27))
    (i32.const 1))

  (func $trap (result i32) unreachable)

  (func $spin (result i32)
    (loop $again (br $again))
    (i32.const 0))

  (func $recurse (result i32)
    (i32.add (call $recurse) (i32.const 1)))

  (func $grow (result i32)
    (loop $again
      (br_if $again (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))
    unreachable)

  (func $garble (result i32)
    (call $output_write (i32.const 192) (i32.const 15))
    (i32.const 0))

  (func $silent (result i32) (i32.const 0))

  (func $wait (result i32)
    (call $log (i32.const 1) (i32.const 256) (i32.const 7))
    (drop (call $poll_oneoff (i32.const 512) (i32.const 576) (i32.const 1) (i32.const 640)))
    (call $output_write (i32.const 288) (i32.const 8))
    (i32.const 0)))
