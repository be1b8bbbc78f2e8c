/// Returns what is wrong with a name, or None.
pub(crate) fn fault(name: &str) -> Option<String> {
    let fits =
        (1..=64).contains(&name.len()) && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_' || c == b'-');
    (!fits).then(|| format!("{name:?} is not a valid name: use 1 to 64 of the characters A-Z a-z 0-9 _ -"))
}

/// Reports whether an identifier names a type of the language.
pub(crate) fn is_primitive(ident: &str) -> bool {
    #[rustfmt::skip]
    const PRIMITIVES: &[&str] = &[
        "bool", "char", "str", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64", "u128", "usize",
    ];
    PRIMITIVES.contains(&ident)
}
