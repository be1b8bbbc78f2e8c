;; The tools that the official conformance suite of MCP calls by these names, and a few that clients are tried with.
;; tools.json is their manifest, in the order of the table: toolsrv pack joins the two.
(module
  (import "toolsrv_v1" "input_size" (func $input_size (result i32)))
  (import "toolsrv_v1" "input_read" (func $input_read (param i32)))
  (import "toolsrv_v1" "output_write" (func $output_write (param i32 i32)))
  (import "toolsrv_v1" "fail" (func $fail (param i32 i32)))
  (import "toolsrv_v1" "log" (func $log (param i32 i32 i32)))
  (import "toolsrv_v1" "progress" (func $progress (param f64 f64 i32 i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll_oneoff (param i32 i32 i32 i32) (result i32)))

  (memory (export "memory") 2)
  ;; Subscriptions to the monotonic clock: 150 ms from now, so that no report of progress comes too soon after the last,
  ;; and a minute from now.
  (data (i32.const 0) "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\01\00\00\00\00\00\00\00\80\d1\f0\08\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
  (data (i32.const 64) "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\01\00\00\00\00\00\00\00\00\58\47\f8\0d\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
  ;; What the tools say. Each literal has its length where it is used.
  (data (i32.const 1024) "\"This is a simple text response for testing.\"")
  (data (i32.const 1088) "\"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC\"")
  (data (i32.const 1216) "\"UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAoLCggGBQYA==\"")
  (data (i32.const 1344) "\"VGhpcyBpcyBhbiBlbWJlZGRlZCByZXNvdXJjZSBjb250ZW50Lg==\"")
  (data (i32.const 1408) "{\"note\":\"Multiple content types test:\",\"image\":\"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC\",\"resource\":\"eyJ0ZXN0IjoiZGF0YSIsInZhbHVlIjoxMjN9\"}")
  (data (i32.const 1600) "{\"message\":\"This tool intentionally returns an error for testing\"}")
  (data (i32.const 1728) "\"done\"")
  (data (i32.const 1792) "Waiting")
  (data (i32.const 1856) "Tool execution started")
  (data (i32.const 1920) "Tool execution completed")
  (data (i32.const 1984) "change the tools")

  (type $tool (func (result i32)))
  (table funcref (elem $text $image $audio $resource $mixed $error $with_progress $echo $logging $stream $change $echo $wait $spin))

  (func (export "toolsrv_call") (param $tool i32) (result i32)
    (call_indirect (type $tool) (local.get $tool)))

  (func $say (param $at i32) (param $length i32) (result i32)
    (call $output_write (local.get $at) (local.get $length))
    (i32.const 0))

  (func $sleep (param $subscription i32)
    (drop (call $poll_oneoff (local.get $subscription) (i32.const 128) (i32.const 1) (i32.const 192))))

  (func $text (result i32)
    (call $say (i32.const 1024) (i32.const 45)))

  (func $image (result i32)
    (call $say (i32.const 1088) (i32.const 94)))

  (func $audio (result i32)
    (call $say (i32.const 1216) (i32.const 74)))

  (func $resource (result i32)
    (call $say (i32.const 1344) (i32.const 54)))

  (func $mixed (result i32)
    (call $say (i32.const 1408) (i32.const 192)))

  (func $error (result i32)
    (call $fail (i32.const 1600) (i32.const 66))
    (i32.const 1))

  ;; It sleeps before it returns, too: some clients drop a report that they read together with the result.
  (func $with_progress (result i32)
    (call $progress (f64.const 0) (f64.const 100) (i32.const 0) (i32.const 0))
    (call $sleep (i32.const 0))
    (call $progress (f64.const 50) (f64.const 100) (i32.const 0) (i32.const 0))
    (call $sleep (i32.const 0))
    (call $progress (f64.const 100) (f64.const 100) (i32.const 0) (i32.const 0))
    (call $sleep (i32.const 0))
    (call $say (i32.const 1728) (i32.const 6)))

  (func $echo (result i32)
    (call $input_read (i32.const 4096))
    (call $say (i32.const 4096) (call $input_size)))

  (func $logging (result i32)
    (call $log (i32.const 1) (i32.const 1856) (i32.const 22))
    (call $log (i32.const 1) (i32.const 1920) (i32.const 24))
    (call $say (i32.const 1728) (i32.const 6)))

  (func $stream (result i32)
    (call $progress (f64.const 1) (f64.const 2) (i32.const 0) (i32.const 0))
    (call $sleep (i32.const 0))
    (call $say (i32.const 1728) (i32.const 6)))

  ;; A line of level warn is written at once. Whoever runs the suite sees it and changes the directory.
  (func $change (result i32)
    (call $log (i32.const 2) (i32.const 1984) (i32.const 16))
    (call $say (i32.const 1728) (i32.const 6)))

  ;; A caller who is told of progress knows that the call runs, and can cancel it.
  (func $wait (result i32)
    (call $progress (f64.const 1) (f64.const 2) (i32.const 1792) (i32.const 7))
    (call $sleep (i32.const 64))
    (call $say (i32.const 1728) (i32.const 6)))

  ;; Who can't be told of progress sees the line in the log.
  (func $spin (result i32)
    (call $log (i32.const 2) (i32.const 1792) (i32.const 7))
    (call $progress (f64.const 1) (f64.const 2) (i32.const 1792) (i32.const 7))
    (loop $again (br $again))
    (i32.const 0)))
