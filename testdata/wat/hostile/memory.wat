;; Tool 0 takes memory page by page and traps when there is none left, 1 does so in one step, 2 ends itself with
;; proc_exit then, 3 lives with the refusal and answers, 4 grows a table until that is refused, and answers, 5 returns 2 after the
;; refusal.
(module
  (import "toolsrv_v1" "output_write" (func $output_write (param i32 i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 1)
  (table $t 1 funcref)
  (data (i32.const 0) "\"still here\"")
  (func $grow (param i32) (loop $more (br_if $more (i32.ne (memory.grow (local.get 0)) (i32.const -1)))))
  (func (export "toolsrv_call") (param $tool i32) (result i32)
    (if (i32.eq (local.get $tool) (i32.const 0)) (then (call $grow (i32.const 1)) unreachable))
    (if (i32.eq (local.get $tool) (i32.const 1)) (then (call $grow (i32.const 32768)) unreachable))
    (if (i32.eq (local.get $tool) (i32.const 2)) (then (call $grow (i32.const 1)) (call $proc_exit (i32.const 2))))
    (if (i32.eq (local.get $tool) (i32.const 3)) (then (call $grow (i32.const 100))))
    (if (i32.eq (local.get $tool) (i32.const 5)) (then (call $grow (i32.const 1)) (return (i32.const 2))))
    (if (i32.eq (local.get $tool) (i32.const 4))
      (then
        (if (i32.ne (table.grow $t (ref.null func) (i32.const 0x7fffffff)) (i32.const -1)) (then unreachable))
        (loop $more (br_if $more (i32.ne (table.grow $t (ref.null func) (i32.const 100000)) (i32.const -1))))))
    (call $output_write (i32.const 0) (i32.const 12))
    (i32.const 0)))
