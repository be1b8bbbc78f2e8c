//! Randomness of the host, new in every call and good enough for secrets, on every target.
//!
//! Take it in a tool's function: what was drawn earlier, in a static or in `warm`, is the same in every call. That
//! holds for the seeds of `HashMap`, too, which are fixed on `wasm32-unknown-unknown` anyway.

use crate::host;

/// Fills `to` with random bytes.
pub fn fill(to: &mut [u8]) {
    host::random(to);
}

/// Returns `N` random bytes: a seed or a key.
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut out = [0; N];
    fill(&mut out);
    out
}

/// Returns a random number from the whole range of the type.
pub fn u64() -> u64 {
    u64::from_le_bytes(bytes())
}

/// Returns a random number below `bound`, each as likely as the others, and 0 where `bound` is 0.
pub fn below(bound: u64) -> u64 {
    // Lemire: the high half of a product is uniform but for those whose low half is below 2^64 mod bound.
    let threshold = bound.wrapping_neg().checked_rem(bound).unwrap_or_default();
    loop {
        let product = u128::from(u64()) * u128::from(bound);
        if product as u64 >= threshold {
            return (product >> 64) as u64;
        }
    }
}
