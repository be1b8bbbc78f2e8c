//! Doc comments as descriptions. Their lines end where the author's editor wrapped them, which is not the end of a line for
//! those who read the text elsewhere. The macros have the same file: they can't use that of the crate.

/// Joins the lines of each paragraph, by the rules of Markdown: blank lines, items of lists, headings, quotations, tables
/// and code stay where they are.
pub(crate) fn flowed(text: &str) -> String {
    let mut out = String::new();
    let (mut fenced, mut open) = (false, false); // open: the next line may belong to this one
    for line in text.split('\n') {
        let line = line.trim_ascii_end();
        let part = line.trim_ascii_start();
        let fence = starts(part, &["```", "~~~"]);
        if open && !fence && !begins(part) {
            out.push(' ');
            out.push_str(part);
        } else {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(line);
            open = !fence && !fenced && !part.is_empty() && !starts(line, &["    ", "\t"]) && !starts(part, &["#"]);
        }
        fenced ^= fence;
        open &= !part.ends_with('\\');
    }
    out
}

/// Reports whether a line begins something new, or is blank.
fn begins(line: &str) -> bool {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    match line.get(digits..) {
        Some(rest) if digits > 0 => starts(rest, &[". ", ") "]),
        _ => line.is_empty() || starts(line, &["- ", "* ", "+ ", "#", ">", "|"]),
    }
}

#[inline(never)]
fn starts(line: &str, with: &[&str]) -> bool {
    with.iter().any(|mark| line.as_bytes().starts_with(mark.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::flowed;

    #[test]
    fn lines() {
        for (text, want) in [
            ("", ""),
            ("one", "one"),
            ("tau and\ne, and\npi", "tau and e, and pi"),
            ("one\n\ntwo\nthree  \n\n\nfour", "one\n\ntwo three\n\n\nfour"),
            ("of these:\n- one\n  goes on\n- two\n* three\n+ four", "of these:\n- one goes on\n- two\n* three\n+ four"),
            ("1. one\n   goes on\n2. two\n10) ten", "1. one goes on\n2. two\n10) ten"),
            ("between 1\nand\n-1 or\n3 and\n1.5", "between 1 and -1 or 3 and 1.5"),
            ("# Head\ntext\n> said\n> more\n| a |\n| b |", "# Head\ntext\n> said\n> more\n| a |\n| b |"),
            ("see\n```json\n{\n\n  \"a\": 1\n}\n```\nand\nso", "see\n```json\n{\n\n  \"a\": 1\n}\n```\nand so"),
            ("see\n\n    a\n    b\n\nand\n    so", "see\n\n    a\n    b\n\nand so"),
            ("one\\\ntwo", "one\\\ntwo"),
            ("```\nnever\nclosed", "```\nnever\nclosed"),
            ("ä\r\nö", "ä ö"),
        ] {
            assert_eq!(flowed(text), want, "{text:?}");
            assert_eq!(flowed(want), want, "twice: {text:?}");
        }
    }

    #[test]
    fn is_that_of_the_macros() {
        let one = concat!(env!("CARGO_MANIFEST_DIR"), "/../toolsrv/src/prose.rs");
        let other = concat!(env!("CARGO_MANIFEST_DIR"), "/../toolsrv-macros/src/prose.rs");
        assert_eq!(std::fs::read(one).ok(), std::fs::read(other).ok());
    }
}
