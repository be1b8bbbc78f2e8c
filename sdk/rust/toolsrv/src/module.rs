use std::sync::Once;

use schemars::JsonSchema;
use serde_json::Value;

use crate::writer::Writer;
use crate::{Error, Tool, schema};

/// A `Module` is a set of tools in one `.wasm` file. [`export!`](macro@crate::export) makes it.
#[derive(Debug)]
pub struct Module {
    head: &'static str, // of the manifest, up to the settings, or where there are none to the first tool
    settings: Option<Settings>,
    tools: &'static [Tool],
    warm: Option<fn()>,
    warmed: Once,
}

/// The settings that a module declares.
#[doc(hidden)]
#[derive(Debug)]
pub struct Settings {
    schema: fn() -> Value,
    rest: &'static str, // of the manifest, up to the first tool
}

impl Settings {
    /// Returns settings of the type `T`.
    pub const fn of<T: JsonSchema>(rest: &'static str) -> Self {
        Self { schema: schema::of_arguments::<T>, rest }
    }
}

/// What ends a manifest.
const TAIL: &str = "]}";

/// The most bytes of an operation id, which is the namespace and the name.
const OPERATION_ID: usize = 64;

impl Module {
    /// Returns a module.
    #[doc(hidden)]
    pub const fn new(
        head: &'static str,
        settings: Option<Settings>,
        tools: &'static [Tool],
        warm: Option<fn()>,
    ) -> Self {
        Self { head, settings, tools, warm, warmed: Once::new() }
    }

    /// Returns the tools.
    pub fn tools(&self) -> &'static [Tool] {
        self.tools
    }

    /// Calls the author's function that prepares what calls need, once.
    pub(crate) fn warm(&self) {
        if let Some(warm) = self.warm {
            self.warmed.call_once(warm);
        }
    }

    /// Returns the manifest, the JSON that the server reads. It fails where a tool's arguments are not an object.
    pub fn manifest(&self) -> Result<String, Error> {
        let mut out = Writer::new(self.head);
        if let Some(Settings { schema, rest }) = &self.settings {
            out.value("settings", &schema());
            out = Writer::new(&out.finish(rest));
        }
        for tool in self.tools {
            tool.describe(&mut out)?;
        }
        Ok(out.finish(TAIL))
    }
}

// What follows runs when a tool is compiled: a panic is a compiler error.

/// Refuses tool number `tool` where its name is that of one before, or too long with the namespace.
#[allow(clippy::indexing_slicing, clippy::panic)]
pub const fn check_name(namespace: &str, tools: &[Tool], tool: usize) {
    let name = tools[tool].name().as_bytes();
    if !namespace.is_empty() && namespace.len() + 1 + name.len() > OPERATION_ID {
        panic!("a tool's namespace and name have more than 64 characters together: shorten one");
    }
    let mut before = 0;
    while before < tool {
        if equal(name, tools[before].name().as_bytes()) {
            panic!("two tools have the same name: give one another with `#[tool(name = \"…\")]`");
        }
        before += 1;
    }
}

#[allow(clippy::indexing_slicing)]
const fn equal(a: &[u8], b: &[u8]) -> bool {
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

/// Returns the size of the manifest, or 0 where a part is not known yet.
#[allow(clippy::indexing_slicing)]
pub const fn manifest_size(head: &str, parts: &[Option<&str>]) -> usize {
    let mut size = head.len() + TAIL.len();
    let mut i = 0;
    while i < parts.len() {
        match parts[i] {
            Some(part) => size += part.len(),
            None => return 0,
        }
        if i > 0 {
            size += 1; // a comma
        }
        i += 1;
    }
    size
}

/// Returns the manifest, whose size is `SIZE`.
#[allow(clippy::indexing_slicing)]
pub const fn manifest<const SIZE: usize>(head: &str, parts: &[Option<&str>]) -> [u8; SIZE] {
    let mut out = [0; SIZE];
    if SIZE == 0 {
        return out;
    }
    let mut at = put(&mut out, 0, head);
    let mut i = 0;
    while i < parts.len() {
        if i > 0 {
            at = put(&mut out, at, ",");
        }
        if let Some(part) = parts[i] {
            at = put(&mut out, at, part);
        }
        i += 1;
    }
    put(&mut out, at, TAIL);
    out
}

#[allow(clippy::indexing_slicing)]
const fn put(out: &mut [u8], at: usize, text: &str) -> usize {
    let text = text.as_bytes();
    let mut i = 0;
    while i < text.len() {
        out[at + i] = text[i];
        i += 1;
    }
    at + i
}
