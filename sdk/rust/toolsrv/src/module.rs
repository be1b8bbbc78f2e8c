use crate::writer::Writer;
use crate::{Error, Tool};

/// The version of this SDK, as manifests name it.
const SDK: &str = concat!("rust/", env!("CARGO_PKG_VERSION"));

/// A `Module` is a set of tools in one `.wasm` file. [`export!`](macro@crate::export) makes it.
#[derive(Debug)]
pub struct Module {
    namespace: &'static str,
    version: &'static str,
    tools: &'static [Tool],
    warm: Option<fn()>,
}

impl Module {
    #[doc(hidden)]
    pub const fn new(
        namespace: &'static str,
        version: &'static str,
        tools: &'static [Tool],
        warm: Option<fn()>,
    ) -> Self {
        Self { namespace, version, tools, warm }
    }

    /// Returns the tools.
    pub fn tools(&self) -> &'static [Tool] {
        self.tools
    }

    pub(crate) fn warm(&self) -> Option<fn()> {
        self.warm
    }

    /// Returns the manifest, the JSON that the server reads. It fails where a tool's arguments are no object.
    pub fn manifest(&self) -> Result<String, Error> {
        let mut out = Writer::default();
        out.begin();
        out.json("abi", "1");
        if !self.namespace.is_empty() {
            out.text("namespace", self.namespace);
        }
        if !self.version.is_empty() {
            out.text("version", self.version);
        }
        out.text("sdk", SDK);
        out.begin_list("tools");
        for tool in self.tools {
            tool.describe(&mut out)?;
        }
        out.end_list();
        out.end();
        Ok(out.finish())
    }
}
