/// Returns what is wrong with a name, or None.
pub(crate) fn fault(name: &str) -> Option<String> {
    let fits =
        (1..=64).contains(&name.len()) && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_' || c == b'-');
    (!fits).then(|| format!("{name:?} is no name: use 1 to 64 of the characters A-Z a-z 0-9 _ -"))
}
