// A plain WASI program for the tests, built by Rust's own compiler, without crates.
use std::io::{Read, Write};
use std::time::{Duration, Instant};

fn main() {
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input).unwrap();
    if input.contains("fail") {
        eprintln!("the reason");
        std::process::exit(4);
    }
    assert!(std::fs::read("/etc/passwd").is_err());
    assert_eq!(std::env::vars().count(), 0);
    let begun = Instant::now();
    std::thread::sleep(Duration::from_millis(10));
    assert!(begun.elapsed() >= Duration::from_millis(10));
    eprintln!("a log line");
    std::io::stdout().write_all(input.as_bytes()).unwrap();
}
