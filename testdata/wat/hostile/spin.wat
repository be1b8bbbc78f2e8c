;; Never ends: tool 0 in an empty loop, 1 calling a cheap host function, 2 filling memory, 3 drawing randomness,
;; 4 sleeping an hour, 5 sleeping until a moment that never comes, 6 asking for no sleep at all for ever,
;; 7 by tail of mutual calls in a loop, 8 growing a table and its memory by nothing.
(module
  (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 256)
  (table $t 1 funcref)
  (func $sleep (param $nanos i64) (param $flags i32)
    (i32.store (i32.const 16) (i32.const 1)) ;; the monotonic clock
    (i64.store (i32.const 24) (local.get $nanos))
    (i32.store16 (i32.const 40) (local.get $flags))
    (drop (call $poll (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 128))))
  (func $ping (param i32) (if (local.get 0) (then (call $pong (i32.sub (local.get 0) (i32.const 1))))))
  (func $pong (param i32) (if (local.get 0) (then (call $ping (i32.sub (local.get 0) (i32.const 1))))))
  (func (export "toolsrv_call") (param $tool i32) (result i32)
    (if (i32.eqz (local.get $tool)) (then (loop $empty (br $empty))))
    (loop $again
      (if (i32.eq (local.get $tool) (i32.const 1)) (then (drop (call $yield))))
      (if (i32.eq (local.get $tool) (i32.const 2)) (then (memory.fill (i32.const 0) (i32.const 1) (i32.const 16777216))))
      (if (i32.eq (local.get $tool) (i32.const 3)) (then (drop (call $random (i32.const 0) (i32.const 16777216)))))
      (if (i32.eq (local.get $tool) (i32.const 4)) (then (call $sleep (i64.const 3600000000000) (i32.const 0))))
      (if (i32.eq (local.get $tool) (i32.const 5)) (then (call $sleep (i64.const -1) (i32.const 1))))
      (if (i32.eq (local.get $tool) (i32.const 6)) (then (call $sleep (i64.const 0) (i32.const 0))))
      (if (i32.eq (local.get $tool) (i32.const 7)) (then (call $ping (i32.const 100))))
      (if (i32.eq (local.get $tool) (i32.const 8)) (then
        (drop (table.grow $t (ref.null func) (i32.const 0)))
        (drop (memory.grow (i32.const 0)))))
      (br $again))
    (i32.const 0)))
