//! Whether two JSON values are equal: members in any order, and numbers by value, so that 1, 1.0 and 10e-1 are.

use serde_json::{Number, Value};

/// Compares two values as RFC 6902, section 4.6, wants it.
pub fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || decimal(a) == decimal(b),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| equal(a, b)))
        }
        _ => a == b,
    }
}

/// A number as its sign, its digits without zeros at either end, and the power of ten of the last digit. Numbers keep
/// the digits that they were written with, and may have more of them than a double can tell apart.
fn decimal(number: &Number) -> (bool, String, i128) {
    let text = number.to_string();
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.as_str()),
    };
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_end_matches('0');
    let zeros = digits.len() - significant.len();
    let significant = significant.trim_start_matches('0');
    if significant.is_empty() {
        return (false, String::new(), 0);
    }
    // An exponent of more than 38 digits is as good as any other of that size.
    let limit = if exponent.starts_with('-') { i128::MIN / 2 } else { i128::MAX / 2 };
    let exponent = exponent.parse().unwrap_or(limit).clamp(i128::MIN / 2, i128::MAX / 2);
    (negative, significant.to_string(), exponent - fraction.len() as i128 + zeros as i128)
}
