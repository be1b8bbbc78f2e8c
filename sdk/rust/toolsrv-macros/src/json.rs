/// Returns why a text is not a JSON value, or None. With it a slip in an example is reported at its place, when the tool
/// is compiled.
pub(crate) fn fault(text: &str) -> Option<String> {
    let mut reader = Reader { text: text.as_bytes(), place: 0 };
    match reader.value(0).and_then(|()| reader.end()) {
        Ok(()) => None,
        Err(why) => {
            let before = text.get(..reader.place).unwrap_or(text);
            let line = before.matches('\n').count() + 1;
            let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
            Some(format!("{why} at line {line}, column {column}"))
        }
    }
}

/// Reports whether a JSON text is an object.
pub(crate) fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// Returns a text as a JSON string.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\0'..='\x1f' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// How deep values may be nested: that of the host.
const DEPTH: usize = 1000;

type Result<T = ()> = std::result::Result<T, &'static str>;

struct Reader<'a> {
    text: &'a [u8],
    place: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.place).copied()
    }

    /// Takes the next byte if it is one of `bytes`.
    fn take(&mut self, bytes: &[u8]) -> bool {
        let found = self.peek().is_some_and(|c| bytes.contains(&c));
        self.place += usize::from(found);
        found
    }

    fn space(&mut self) {
        while self.take(b" \t\r\n") {}
    }

    fn end(&mut self) -> Result {
        self.space();
        if self.peek().is_none() { Ok(()) } else { Err("something follows the value") }
    }

    fn value(&mut self, depth: usize) -> Result {
        self.space();
        match self.peek() {
            _ if depth > DEPTH => Err("nested too deeply"),
            Some(b'{') => self.list(b"}", depth, |reader| {
                reader.space();
                if reader.peek() != Some(b'"') {
                    return Err("a member's name is missing");
                }
                reader.string()?;
                reader.space();
                if reader.take(b":") { Ok(()) } else { Err("a `:` is missing") }
            }),
            Some(b'[') => self.list(b"]", depth, |_| Ok(())),
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.word(),
        }
    }

    /// Reads elements up to the closing bracket; `name` reads what stands before each.
    fn list(&mut self, close: &[u8], depth: usize, name: fn(&mut Self) -> Result) -> Result {
        self.place += 1;
        self.space();
        if self.take(close) {
            return Ok(());
        }
        loop {
            name(self)?;
            self.value(depth + 1)?;
            self.space();
            if self.take(close) {
                return Ok(());
            }
            if !self.take(b",") {
                return Err("a comma or a closing bracket is missing");
            }
        }
    }

    fn string(&mut self) -> Result {
        self.place += 1;
        loop {
            match self.peek() {
                None => return Err("a string has no end"),
                Some(0..=0x1f) => return Err("a string has a control character: escape it"),
                Some(b'"') => {
                    self.place += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.place += 1;
                    if self.take(b"u") {
                        for _ in 0..4 {
                            if !self.take(b"0123456789abcdefABCDEF") {
                                return Err("four hexadecimal digits are missing");
                            }
                        }
                    } else if !self.take(b"\"\\/bfnrt") {
                        return Err("there is no such escape");
                    }
                }
                Some(_) => self.place += 1,
            }
        }
    }

    fn number(&mut self) -> Result {
        self.take(b"-");
        if !self.take(b"0") {
            self.digits()?;
        }
        if self.take(b".") {
            self.digits()?;
        }
        if self.take(b"eE") {
            self.take(b"+-");
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result {
        if !self.take(b"0123456789") {
            return Err("a digit is missing");
        }
        while self.take(b"0123456789") {}
        Ok(())
    }

    fn word(&mut self) -> Result {
        let rest = self.text.get(self.place..).unwrap_or_default();
        match ["true", "false", "null"].iter().find(|word| rest.starts_with(word.as_bytes())) {
            Some(word) => {
                self.place += word.len();
                Ok(())
            }
            None => Err("a value is missing"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted() {
        let text = "a\"b\\c\nd\u{1}ä";
        assert_eq!(quote(text), r#""a\"b\\c\nd\u0001ä""#);
        assert_eq!(fault(&quote(text)), None);
    }

    #[test]
    fn texts() {
        let deep = "[".repeat(DEPTH + 2);
        for (text, want) in [
            (" {\"a\": [1, -0.5e+3, true, null, \"\\u00e4\\n\", {}, []]} ", None),
            ("0", None),
            ("\"ä\"", None),
            ("", Some("a value is missing at line 1, column 1")),
            ("{a: 1}", Some("a member's name is missing at line 1, column 2")),
            ("{\"a\" 1}", Some("a `:` is missing at line 1, column 6")),
            ("[1,\n 2,]", Some("a value is missing at line 2, column 4")),
            ("[1 2]", Some("a comma or a closing bracket is missing at line 1, column 4")),
            ("[1", Some("a comma or a closing bracket is missing at line 1, column 3")),
            ("\"ä", Some("a string has no end at line 1, column 3")),
            ("\"\t\"", Some("a string has a control character: escape it at line 1, column 2")),
            ("\"\\x\"", Some("there is no such escape at line 1, column 3")),
            ("\"\\u12g4\"", Some("four hexadecimal digits are missing at line 1, column 6")),
            ("01", Some("something follows the value at line 1, column 2")),
            ("1.", Some("a digit is missing at line 1, column 3")),
            ("-", Some("a digit is missing at line 1, column 2")),
            ("1e", Some("a digit is missing at line 1, column 3")),
            ("nul", Some("a value is missing at line 1, column 1")),
            ("{} {}", Some("something follows the value at line 1, column 4")),
            (&deep, Some("nested too deeply at line 1, column 1002")),
        ] {
            assert_eq!(fault(text).as_deref(), want, "{text}");
        }
    }
}
