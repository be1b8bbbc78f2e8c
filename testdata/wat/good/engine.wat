;; An engine: what its modules have in common is initialised once, and each of them has a bundle, which warm reads. Tool n answers with
;; the 16 bytes at 16*n in hexadecimal, when it has counted the call at 124. So each tool can look at all that others might have left.
;;
;; At 112: the bundle's first bytes, as warm saw it; as _initialize saw it, where it is not there yet; how often warm ran; calls.
;; At 128: eight random bytes drawn by _initialize, and eight drawn by warm.
;; A bundle's bytes: [0] is written to the last byte of each of the first n pages of 4 KiB behind 1 MiB, where n is [1]; the memory
;; grows by [2] pages, and the last byte of them gets [0]; where [3] is not 0, warm traps.
(module
  (import "toolsrv_v1" "output_write" (func $output_write (param i32 i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))
  (memory (export "memory") 40)
  (global (export "toolsrv_bundle") i32 (i32.const 65536))
  (global $ready (mut i32) (i32.const 0))
  (data (i32.const 0) "0123456789abcdef")
  (func (export "_initialize") (local $at i32)
    (i32.store (i32.const 116) (i32.load (i32.const 65536)))
    (drop (call $random_get (i32.const 128) (i32.const 8)))
    (local.set $at (i32.const 1048576))
    (loop $fill
      (i32.store (local.get $at) (i32.mul (local.get $at) (i32.const 31)))
      (br_if $fill (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 64))) (i32.const 2621440))))
    (global.set $ready (i32.const 1)))
  (func (export "toolsrv_warm") (local $n i32)
    (if (i32.eqz (global.get $ready)) (then unreachable))
    (i32.store (i32.const 112) (i32.load (i32.const 65536)))
    (i32.store (i32.const 120) (i32.add (i32.load (i32.const 120)) (i32.const 1)))
    (drop (call $random_get (i32.const 136) (i32.const 8)))
    (local.set $n (i32.load8_u (i32.const 65537)))
    (loop $write
      (if (local.get $n)
        (then
          (local.set $n (i32.sub (local.get $n) (i32.const 1)))
          (i32.store8 (i32.add (i32.const 1052671) (i32.mul (local.get $n) (i32.const 4096))) (i32.load8_u (i32.const 65536)))
          (br $write))))
    (if (i32.load8_u (i32.const 65538))
      (then
        (drop (memory.grow (i32.load8_u (i32.const 65538))))
        (i32.store8 (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 1)) (i32.load8_u (i32.const 65536)))))
    (if (i32.load8_u (i32.const 65539)) (then unreachable)))
  (func (export "toolsrv_call") (param $tool i32) (result i32) (local $n i32) (local $byte i32)
    (i32.store (i32.const 124) (i32.add (i32.load (i32.const 124)) (i32.const 1)))
    (i32.store8 (i32.const 256) (i32.const 34)) ;; "
    (loop $digit
      (local.set $byte (i32.load8_u (i32.add (i32.mul (local.get $tool) (i32.const 16)) (local.get $n))))
      (i32.store8 offset=257 (i32.mul (local.get $n) (i32.const 2)) (i32.load8_u (i32.shr_u (local.get $byte) (i32.const 4))))
      (i32.store8 offset=258 (i32.mul (local.get $n) (i32.const 2)) (i32.load8_u (i32.and (local.get $byte) (i32.const 15))))
      (br_if $digit (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 16))))
    (i32.store8 (i32.const 289) (i32.const 34))
    (call $output_write (i32.const 256) (i32.const 34))
    (i32.const 0)))
