use serde::Serialize;

use crate::Error;
use crate::tool::{Described, Tool};

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

/// The manifest as it is written.
#[derive(Serialize)]
struct Manifest {
    abi: u32,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    version: &'static str,
    sdk: &'static str,
    tools: Vec<Described>,
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

    /// Returns the manifest, the JSON that the server reads. It fails where an example is no JSON or the arguments are
    /// no object, and names the tool.
    pub fn manifest(&self) -> Result<String, Error> {
        let mut tools = Vec::with_capacity(self.tools.len());
        for tool in self.tools {
            let described =
                tool.describe().map_err(|e| Error::new(format!("tool {:?}: {}", tool.name(), e.message())))?;
            tools.push(described);
        }
        let manifest = Manifest { abi: 1, namespace: self.namespace, version: self.version, sdk: SDK, tools };
        Ok(serde_json::to_string(&manifest)?)
    }
}
