use serde_json::Value;

/// A `Writer` writes JSON whose parts are there already, some as text. It makes a module some KiB smaller than deriving
/// `Serialize` would, and passes the author's JSON on as it is.
pub(crate) struct Writer {
    out: String,
}

impl Writer {
    /// Returns a writer that goes on where `head` ends, which is in an object or a list.
    pub(crate) fn new(head: &str) -> Self {
        Self { out: head.into() }
    }

    /// Begins an object, an element of a list.
    pub(crate) fn begin(&mut self) {
        self.part();
        self.out.push('{');
    }

    /// Ends an object.
    pub(crate) fn end(&mut self) {
        self.out.push('}');
    }

    /// Begins a member that is a list.
    pub(crate) fn begin_list(&mut self, name: &str) {
        self.json(name, "[");
    }

    /// Ends a list.
    pub(crate) fn end_list(&mut self) {
        self.out.push(']');
    }

    /// Writes a member that is a string.
    pub(crate) fn text(&mut self, name: &str, value: &str) {
        self.json(name, &serde_json::to_string(value).unwrap_or_default()); // a text can always be written
    }

    /// Writes a member.
    pub(crate) fn value(&mut self, name: &str, value: &Value) {
        self.json(name, &serde_json::to_string(value).unwrap_or_default()); // so can a value
    }

    /// Writes a member that is JSON already. Names are those of the ABI and need no escapes.
    pub(crate) fn json(&mut self, name: &str, text: &str) {
        self.part();
        self.out.push('"');
        self.out.push_str(name);
        self.out.push_str("\":");
        self.out.push_str(text);
    }

    /// Writes members that are JSON already, with commas between, or none.
    pub(crate) fn members(&mut self, text: &str) {
        if !text.is_empty() {
            self.part();
            self.out.push_str(text);
        }
    }

    /// Returns what was written, up to `tail`, which ends it.
    pub(crate) fn finish(mut self, tail: &str) -> String {
        self.out.push_str(tail);
        self.out
    }

    /// Separates what follows from what is before it.
    fn part(&mut self) {
        if !self.out.ends_with(['{', '[']) {
            self.out.push(',');
        }
    }
}
