package instrument_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit/wasmtest"
)

const cpuGuest = `package main

import (
	"crypto/sha256"
	"encoding/json"
	"sort"
)

var sink int

//go:wasmexport hash
func hash(n int32) int32 {
	b := make([]byte, 4096)
	for range n {
		s := sha256.Sum256(b)
		copy(b, s[:])
	}
	return int32(b[0])<<8 | int32(b[1])
}

//go:wasmexport sorting
func sorting(n int32) int32 {
	list := make([]int, n)
	x := uint32(1)
	for i := range list {
		x = x*1664525 + 1013904223
		list[i] = int(x >> 8)
	}
	sort.Ints(list)
	sort.Slice(list, func(i, j int) bool { return list[i]>>3 > list[j]>>3 })
	return int32(list[len(list)/2])
}

//go:wasmexport jsons
func jsons(n int32) int32 {
	type item struct {
		Name string
		Tags []string
		Values map[string]float64
		Sub *item
	}
	it := item{Name: "a\"b", Tags: []string{"x", "y", "zzzz"}, Values: map[string]float64{"a": 1.5, "b": 2e10}}
	it.Sub = &item{Name: "sub", Tags: it.Tags}
	total := 0
	for range n {
		b, err := json.Marshal(it)
		if err != nil { return -1 }
		var back item
		if json.Unmarshal(b, &back) != nil { return -2 }
		total += len(b) + len(back.Tags)
	}
	return int32(total)
}

//go:wasmexport matrix
func matrix(n int32) int32 {
	a, b, c := make([]float64, n*n), make([]float64, n*n), make([]float64, n*n)
	for i := range a { a[i], b[i] = float64(i%7), float64(i%5) }
	for i := range n { for j := range n { s := 0.0; for k := range n { s += a[i*n+k]*b[k*n+j] }; c[i*n+j] = s } }
	return int32(c[n+1])
}

func fibo(n int32) int32 { if n < 2 { return n }; return fibo(n-1)+fibo(n-2) }

//go:wasmexport fib
func fib(n int32) int32 { return fibo(n) }

func main() {}
`

const rustGuest = `#![no_std]
extern crate alloc;
use alloc::vec::Vec;
use alloc::vec;
use core::alloc::{GlobalAlloc, Layout};
struct Bump;
static mut AT: usize = 1 << 21;
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, l: Layout) -> *mut u8 { AT = (AT + l.align() - 1) & !(l.align() - 1); let p = AT; AT += l.size(); if AT > (64 << 20) { core::arch::wasm32::unreachable() } while AT > core::arch::wasm32::memory_size(0) << 16 { core::arch::wasm32::memory_grow(0, 16); } p as *mut u8 }
    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}
#[global_allocator]
static A: Bump = Bump;
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! { core::arch::wasm32::unreachable() }
#[no_mangle] pub extern "C" fn reset() { unsafe { AT = 1 << 21 } }
const K: [u32; 64] = { let mut k = [0u32; 64]; let mut i = 0; let mut x = 12345u32; while i < 64 { x = x.wrapping_mul(1664525).wrapping_add(1013904223); k[i] = x; i += 1 } k };
fn block(h: &mut [u32; 8], b: &[u8]) {
    let mut w = [0u32; 64];
    for i in 0..16 { w[i] = u32::from_be_bytes([b[4*i], b[4*i+1], b[4*i+2], b[4*i+3]]); }
    for i in 16..64 { let s0 = w[i-15].rotate_right(7) ^ w[i-15].rotate_right(18) ^ (w[i-15] >> 3); let s1 = w[i-2].rotate_right(17) ^ w[i-2].rotate_right(19) ^ (w[i-2] >> 10); w[i] = w[i-16].wrapping_add(s0).wrapping_add(w[i-7]).wrapping_add(s1); }
    let mut v = *h;
    for i in 0..64 {
        let s1 = v[4].rotate_right(6) ^ v[4].rotate_right(11) ^ v[4].rotate_right(25);
        let ch = (v[4] & v[5]) ^ (!v[4] & v[6]);
        let t1 = v[7].wrapping_add(s1).wrapping_add(ch).wrapping_add(K[i]).wrapping_add(w[i]);
        let s0 = v[0].rotate_right(2) ^ v[0].rotate_right(13) ^ v[0].rotate_right(22);
        let t2 = s0.wrapping_add((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        v = [t1.wrapping_add(t2), v[0], v[1], v[2], v[3].wrapping_add(t1), v[4], v[5], v[6]];
    }
    for i in 0..8 { h[i] = h[i].wrapping_add(v[i]); }
}
#[no_mangle] pub extern "C" fn hash(n: i32) -> i32 {
    let mut data = vec![7u8; 4096]; let mut h = [1u32; 8];
    for _ in 0..n { for c in 0..64 { block(&mut h, &data[64*c..64*c+64]); } data[0] = h[0] as u8; }
    h[0] as i32
}
#[no_mangle] pub extern "C" fn sorting(n: i32) -> i32 {
    let mut x = 1u32;
    let mut v: Vec<u32> = (0..n).map(|_| { x = x.wrapping_mul(1664525).wrapping_add(1013904223); x >> 8 }).collect();
    v.sort_unstable(); v.sort_by(|a, b| (b >> 3).cmp(&(a >> 3)));
    v[v.len() / 2] as i32
}
enum Json { Null, Num(f64), Str(Vec<u8>), Arr(Vec<Json>), Obj(Vec<(Vec<u8>, Json)>) }
fn string(s: &[u8], p: &mut usize) -> Vec<u8> { let mut out = Vec::new(); *p += 1; while s[*p] != b'"' { if s[*p] == b'\\' { *p += 1 } out.push(s[*p]); *p += 1 } *p += 1; out }
fn parse(s: &[u8], p: &mut usize) -> Json {
    match s[*p] {
        b'n' => { *p += 4; Json::Null }
        b'"' => Json::Str(string(s, p)),
        b'[' => { let mut v = Vec::new(); while s[*p] != b']' { *p += 1; v.push(parse(s, p)); } *p += 1; Json::Arr(v) }
        b'{' => { let mut v = Vec::new(); while s[*p] != b'}' { *p += 1; let k = string(s, p); *p += 1; v.push((k, parse(s, p))); } *p += 1; Json::Obj(v) }
        _ => { let mut n = 0.0; while s[*p] >= b'0' && s[*p] <= b'9' { n = n * 10.0 + (s[*p] - b'0') as f64; *p += 1 } Json::Num(n) }
    }
}
fn count(j: &Json) -> i32 { match j { Json::Null => 1, Json::Num(n) => *n as i32, Json::Str(s) => s.len() as i32, Json::Arr(v) => v.iter().map(count).sum(), Json::Obj(v) => v.iter().map(|(k, j)| k.len() as i32 + count(j)).sum() } }
#[no_mangle] pub extern "C" fn jsons(n: i32) -> i32 {
    let text = br#"{"name":"a\"b","tags":["x","y","zzzz"],"values":{"a":15,"b":20000},"sub":{"name":"sub","tags":["x","y",[1,2,[3,[4,null]]]]}}"#;
    let mut t = 0i32;
    for _ in 0..n { reset(); let mut p = 0; t = t.wrapping_add(count(&parse(text, &mut p))); }
    t
}
#[no_mangle] pub extern "C" fn matrix(n: i32) -> i32 {
    let n = n as usize; let a: Vec<f64> = (0..n*n).map(|i| (i % 7) as f64).collect(); let b: Vec<f64> = (0..n*n).map(|i| (i % 5) as f64).collect(); let mut c = vec![0f64; n*n];
    for i in 0..n { for j in 0..n { let mut s = 0.0; for k in 0..n { s += a[i*n+k] * b[k*n+j]; } c[i*n+j] = s; } }
    c[n+1] as i32
}
#[inline(never)] fn fibo(n: i32) -> i32 { if n < 2 { n } else { fibo(n - 1) + fibo(n - 2) } }
#[no_mangle] pub extern "C" fn fib(n: i32) -> i32 { fibo(n) }
`

// A cpuGuestModule computes: each of its exports takes a count or a size.
type cpuGuestModule struct {
	name   string
	module []byte
	calls  []cpuCall
}

type cpuCall struct {
	export string
	arg    uint64
}

var cpuCalls = []cpuCall{{"hash", 400}, {"sorting", 60_000}, {"jsons", 400}, {"matrix", 120}, {"fib", 26}}

// buildCPUGuests builds guests with real compilers. It skips those whose compiler is missing.
func buildCPUGuests(t testing.TB) []cpuGuestModule {
	t.Helper()
	guests := []cpuGuestModule{{"go", wasmtest.BuildGo(t, cpuGuest), cpuCalls}}
	dir := t.TempDir()
	source, out := filepath.Join(dir, "guest.rs"), filepath.Join(dir, "guest.wasm")
	if err := os.WriteFile(source, []byte(rustGuest), 0o600); err != nil {
		t.Fatal(err)
	}
	rustc := exec.CommandContext(t.Context(), "rustc", "--edition=2021", "--target=wasm32-unknown-unknown", "--crate-type=cdylib", "-Cpanic=abort", "-Copt-level=3", "-Clto", "-o", out, source)
	if text, err := rustc.CombinedOutput(); err != nil {
		t.Logf("without the Rust guest: %v\n%s", err, text)
		return guests
	}
	module, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return append(guests, cpuGuestModule{"rust", module, []cpuCall{{"hash", 400}, {"sorting", 200_000}, {"jsons", 20_000}, {"matrix", 200}, {"fib", 30}}})
}
