//! The macros of the crate `toolsrv`. It re-exports them; depend on it and not on this one.

use proc_macro::TokenStream;

mod about;
mod export;
mod icon;
mod json;
mod names;
mod needs;
mod prose;
mod signature;
mod tool;

/// Makes a tool of a function: `fn name(arguments: A) -> Result<T, E>`.
///
/// The description is the doc comment; agents choose the tool by it, so let it say what the tool does and when to use
/// it. `A` derives `serde::Deserialize` and `schemars::JsonSchema`, `T` derives `serde::Serialize` and `JsonSchema`, and
/// `E` is `toolsrv::Error` or anything that can be displayed. A parameter of type `&Call` may stand before the arguments,
/// and a tool without arguments leaves them out.
///
/// - `#[tool(name = "other")]`: the name by which it is called, 1 to 64 of the characters `A-Z a-z 0-9 _ -`. It is the
///   function's where it is left out.
/// - `#[tool(example(arguments = r#"{"a": 1}"#, result = "2"))]`: a call with its result, both JSON, for the
///   documentation and for tests. It can be repeated. Leave `result` out where it is not worth comparing.
/// - `#[tool(title = "Add two numbers")]`: the tool's name for people, one line of at most 200 characters.
/// - `#[tool(annotations(read_only = true, open_world = false))]`: what the tool does to the world, for clients that ask a
///   person before a call: `read_only`, `destructive`, `idempotent` and `open_world`, each only where it is known.
/// - `#[tool(icon(src = "https://example.com/add.png", mime_type = "image/png", sizes = ["48x48"], theme = "dark"))]`: a
///   picture for the tool; all but `src` may be left out, which can be a `data:` URI in base64, too. It can be repeated.
/// - `#[tool(needs(http = ["https://api.example.com"], kv = true, secrets = ["key"], tools = ["units/convert"], files = ["geo"]))]`:
///   what the tool can't do without, beside what its module needs, each only where it is used. The operator sees it and grants
///   it or not. An entry of `http` is the beginning of URLs: an origin, with a path up to a slash, or with `*` in place of all
///   that comes before a domain, as in `https://*.example.com/v2/`.
/// - `#[tool(parameters = "schema.json", result = "result.json")]`: the JSON Schemas of arguments and result, in files seen
///   from the folder of Cargo.toml, in place of derived ones. `result` may be left out. The types then need no
///   `JsonSchema`; and where all tools of a module are written so, its manifest stands in the file from the start, and
///   `schemars` is not in it.
#[proc_macro_attribute]
pub fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    tool::expand(attribute.into(), item.into()).into()
}

/// Makes the tools of a crate callable: `export! { namespace: "math", version: "1.0.0", tools: [add, sub] }`.
///
/// - `tools`: the functions with the attribute `#[tool]`, by their paths. It is required.
/// - `namespace`: the path before the tools' names: one or more names joined by `/`. Without it the folder of the file
///   in the server's tools directory decides.
/// - `version`: shown to clients and not interpreted; the crate's where it is left out.
/// - `needs`: what all of its tools need, as in the attribute but with colons, and the type of the settings, as that of arguments
///   is written: `needs: { http: ["https://api.example.com"], settings: Settings }`.
/// - `warm`: a function without parameters that prepares what calls need, such as tables and compiled regular
///   expressions in statics: `warm: prepare`. It runs once, and every call begins with what it left.
///
/// It defines `MODULE`, a static of type `toolsrv::Module` for tests. Write it once in a crate, at its root.
#[proc_macro]
pub fn export(input: TokenStream) -> TokenStream {
    export::expand(input.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
