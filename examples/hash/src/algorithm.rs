//! The algorithms by name.

use hmac::{Hmac, KeyInit, Mac, SimpleHmac};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};
use sha3::{Sha3_256, Sha3_384, Sha3_512};

use crate::{Algorithm, MacAlgorithm};

/// Computes a digest.
pub fn digest(algorithm: Algorithm, data: &[u8]) -> Vec<u8> {
    match algorithm {
        Algorithm::Md5 => Md5::digest(data).to_vec(),
        Algorithm::Sha1 => Sha1::digest(data).to_vec(),
        Algorithm::Sha224 => Sha224::digest(data).to_vec(),
        Algorithm::Sha256 => Sha256::digest(data).to_vec(),
        Algorithm::Sha384 => Sha384::digest(data).to_vec(),
        Algorithm::Sha512 => Sha512::digest(data).to_vec(),
        Algorithm::Sha3_256 => Sha3_256::digest(data).to_vec(),
        Algorithm::Sha3_384 => Sha3_384::digest(data).to_vec(),
        Algorithm::Sha3_512 => Sha3_512::digest(data).to_vec(),
        Algorithm::Blake3 => blake3::hash(data).as_bytes().to_vec(),
    }
}

/// Computes a message authentication code: HMAC, RFC 2104.
pub fn mac(algorithm: MacAlgorithm, key: &[u8], data: &[u8]) -> Vec<u8> {
    match algorithm {
        MacAlgorithm::Md5 => hmac::<Hmac<Md5>>(key, data),
        MacAlgorithm::Sha1 => hmac::<Hmac<Sha1>>(key, data),
        MacAlgorithm::Sha256 => hmac::<Hmac<Sha256>>(key, data),
        MacAlgorithm::Sha384 => hmac::<SimpleHmac<Sha384>>(key, data),
        MacAlgorithm::Sha512 => hmac::<Hmac<Sha512>>(key, data),
        MacAlgorithm::Sha3_256 => hmac::<SimpleHmac<Sha3_256>>(key, data),
        MacAlgorithm::Sha3_512 => hmac::<SimpleHmac<Sha3_512>>(key, data),
    }
}

/// Keys have any length, so there is none that does not fit.
fn hmac<M: KeyInit + Mac>(key: &[u8], data: &[u8]) -> Vec<u8> {
    M::new_from_slice(key).map(|mac| mac.chain_update(data).finalize().into_bytes().to_vec()).unwrap_or_default()
}

/// Compares codes in a time that does not tell where they differ.
pub fn same(got: &[u8], want: &[u8]) -> bool {
    got.len() == want.len() && std::hint::black_box(got.iter().zip(want).fold(0, |sum, (a, b)| sum | (a ^ b))) == 0
}
