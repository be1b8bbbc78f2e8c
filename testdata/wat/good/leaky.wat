;; Counts its calls in every kind of state that can be reset in place, each in a tool of its own, and answers with the digit: 0 a
;; global i32, 1 an i64, 2 a f32, 3 a f64, 4 memory that the module has data in, 5 memory that it has none in, 6 the last byte of
;; its memory, 7 memory that it takes by memory.grow, 8 all of its memory, each page of it. A sandbox that is new counts 1.
;; Tool 9 leaves its mark everywhere, then breaks; 10 reads behind its memory, and breaks; 11 leaves its mark and ends itself.
;; Tool 12 counts how often its memory has the size that it is declared with, 13 in each page of 59 that it grows by, 14 in each of the
;; 60 up to the most that is declared; 15 leaves its mark and runs out of fuel in the middle of a function.
(module
  (import "toolsrv_v1" "output_write" (func $output_write (param i32 i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 4 64)
  (data (i32.const 70000) "\00\00\00\00data")
  (global $a (mut i32) (i32.const 0))
  (global $b (mut i64) (i64.const 0))
  (global $c (mut f32) (f32.const 0))
  (global $d (mut f64) (f64.const 0))
  (func $answer (param $n i32)
    (i32.store8 (i32.const 16) (i32.add (i32.const 48) (local.get $n)))
    (call $output_write (i32.const 16) (i32.const 1)))
  (func $count (param $at i32) (result i32)
    (i32.store8 (local.get $at) (i32.add (i32.load8_u (local.get $at)) (i32.const 1)))
    (i32.load8_u (local.get $at)))
  (func $each (param $at i32) (param $end i32) (result i32)
    (local $most i32)
    (loop $next
      (local.set $most (select (local.get $most) (call $count (local.get $at)) (i32.gt_u (local.get $most) (i32.load8_u (local.get $at)))))
      (local.set $at (i32.add (local.get $at) (i32.const 4096)))
      (br_if $next (i32.lt_u (local.get $at) (local.get $end))))
    (local.get $most))
  (func $mark
    (global.set $a (i32.const 5)) (global.set $b (i64.const 5)) (global.set $c (f32.const 5)) (global.set $d (f64.const 5))
    (memory.fill (i32.const 0) (i32.const 5) (i32.const 262144)))
  (func (export "toolsrv_call") (param $tool i32) (result i32)
    (local $page i32)
    (if (i32.eq (local.get $tool) (i32.const 0)) (then
      (global.set $a (i32.add (global.get $a) (i32.const 1)))
      (call $answer (global.get $a))))
    (if (i32.eq (local.get $tool) (i32.const 1)) (then
      (global.set $b (i64.add (global.get $b) (i64.const 1)))
      (call $answer (i32.wrap_i64 (global.get $b)))))
    (if (i32.eq (local.get $tool) (i32.const 2)) (then
      (global.set $c (f32.add (global.get $c) (f32.const 1)))
      (call $answer (i32.trunc_f32_u (global.get $c)))))
    (if (i32.eq (local.get $tool) (i32.const 3)) (then
      (global.set $d (f64.add (global.get $d) (f64.const 1)))
      (call $answer (i32.trunc_f64_u (global.get $d)))))
    (if (i32.eq (local.get $tool) (i32.const 4)) (then (call $answer (call $count (i32.const 70000)))))
    (if (i32.eq (local.get $tool) (i32.const 5)) (then (call $answer (call $count (i32.const 140000)))))
    (if (i32.eq (local.get $tool) (i32.const 6)) (then (call $answer (call $count (i32.const 262143)))))
    (if (i32.eq (local.get $tool) (i32.const 7)) (then
      (local.set $page (memory.grow (i32.const 1)))
      (if (i32.ne (local.get $page) (i32.const 4)) (then (call $answer (i32.const 9)) (return (i32.const 0))))
      (call $answer (call $count (i32.const 262144)))))
    (if (i32.eq (local.get $tool) (i32.const 8)) (then (call $answer (call $each (i32.const 32) (i32.const 262144)))))
    (if (i32.eq (local.get $tool) (i32.const 9)) (then (call $mark) unreachable))
    (if (i32.eq (local.get $tool) (i32.const 10)) (then (drop (i32.load8_u (i32.const 262144)))))
    (if (i32.eq (local.get $tool) (i32.const 11)) (then (call $mark) (call $proc_exit (i32.const 0))))
    (if (i32.eq (local.get $tool) (i32.const 12)) (then (call $answer (i32.eq (memory.size) (i32.const 4)))))
    (if (i32.eq (local.get $tool) (i32.const 13)) (then
      (if (i32.eq (memory.grow (i32.const 59)) (i32.const 4)) (then (call $answer (call $each (i32.const 262144) (i32.const 4128768)))))))
    (if (i32.eq (local.get $tool) (i32.const 14)) (then
      (if (i32.eq (memory.grow (i32.const 60)) (i32.const 4)) (then (call $answer (call $each (i32.const 262144) (i32.const 4194304)))))))
    (if (i32.eq (local.get $tool) (i32.const 15)) (then (loop $more (call $mark) (br $more))))
    (i32.const 0)))
