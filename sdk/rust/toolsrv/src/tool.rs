use std::fmt::Display;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::writer::Writer;
use crate::{Call, Error, finite, schema};

/// A `Tool` is a function with its name, its description and its types. The attribute [`tool`](macro@crate::tool)
/// makes one.
#[derive(Debug)]
pub struct Tool {
    name: &'static str,
    description: &'static str,
    about: &'static str,
    parameters: Schema,
    result: Schema,
    examples: &'static [(&'static str, Option<&'static str>)],
    run: fn(&Call, &[u8]) -> Result<Vec<u8>, Error>,
}

/// Where a schema comes from.
#[doc(hidden)]
#[derive(Debug)]
pub enum Schema {
    /// From the type.
    Derived(fn() -> Value),
    /// From the author: JSON.
    Written(&'static str),
    /// There is none.
    Unknown,
}

impl Schema {
    /// The schema of the arguments of a tool that takes none.
    pub const NO_ARGUMENTS: Self = Self::Written(r#"{"type":"object","additionalProperties":false}"#);

    /// Returns the schema of arguments of the type `A`.
    pub const fn of_arguments<A: JsonSchema>() -> Self {
        Self::Derived(schema::of_arguments::<A>)
    }

    /// Returns the schema of the result in `O`.
    pub const fn of_result<O: Outcome<Value: JsonSchema>>() -> Self {
        Self::Derived(schema::of_result::<O::Value>)
    }
}

/// A type that stands for a tool: the attribute `tool` makes one beside the function, with its name.
#[doc(hidden)]
pub trait Definition {
    const TOOL: Tool;
    /// The tool's part of the manifest, where it is known when the tool is compiled.
    const MANIFEST: Option<&'static str>;
}

/// What a tool returns: a `Result` of something that has a JSON form, and of an error.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a tool can't return `{Self}`",
    label = "return a `Result<T, toolsrv::Error>`",
    note = "T derives `serde::Serialize` and `schemars::JsonSchema`; any error that can be displayed does for `toolsrv::Error`"
)]
pub trait Outcome {
    type Value: Serialize;

    fn into_result(self) -> Result<Self::Value, Error>;
}

impl<T: Serialize, E: Into<Error>> Outcome for Result<T, E> {
    type Value = T;

    fn into_result(self) -> Result<T, Error> {
        self.map_err(Into::into)
    }
}

/// The arguments of a tool that takes none.
#[doc(hidden)]
#[derive(Deserialize)]
pub struct NoArguments {}

impl Tool {
    /// `about` has the other members of the tool's part of the manifest that are known by now: JSON with commas between.
    #[doc(hidden)]
    pub const fn new(
        name: &'static str,
        description: &'static str,
        about: &'static str,
        parameters: Schema,
        result: Schema,
        examples: &'static [(&'static str, Option<&'static str>)],
        run: fn(&Call, &[u8]) -> Result<Vec<u8>, Error>,
    ) -> Self {
        Self { name, description, about, parameters, result, examples, run }
    }

    /// Returns a placeholder for a tool that the macro refused, so that its error is the only one.
    #[doc(hidden)]
    pub const fn broken(name: &'static str) -> Self {
        Self::new(name, "", "", Schema::Unknown, Schema::Unknown, &[], |_, _| {
            Err(Error::broken("the tool does not compile"))
        })
    }

    /// Returns the name by which clients call the tool.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Runs the tool as the host does once it has validated the arguments.
    pub(crate) fn run(&self, call: &Call, arguments: &[u8]) -> Result<Vec<u8>, Error> {
        (self.run)(call, arguments)
    }

    /// Returns the examples: arguments and result.
    pub(crate) const fn examples(&self) -> &'static [(&'static str, Option<&'static str>)] {
        self.examples
    }

    /// Writes the tool's part of the manifest.
    pub(crate) fn describe(&self, to: &mut Writer) -> Result<(), Error> {
        to.begin();
        to.text("name", self.name);
        to.text("description", self.description);
        to.members(self.about);
        match self.parameters {
            Schema::Derived(derive) => {
                let parameters = derive();
                if !schema::is_object(&parameters) {
                    let message =
                        format!("the arguments of the tool {} are not a JSON object: take a struct", self.name);
                    return Err(Error::new(message));
                }
                to.value("parameters", &parameters);
            }
            Schema::Written(text) => to.json("parameters", text),
            Schema::Unknown => {}
        }
        match self.result {
            Schema::Derived(derive) => {
                let result = derive();
                if !schema::is_free(&result) {
                    to.value("result", &result);
                }
            }
            Schema::Written(text) => to.json("result", text),
            Schema::Unknown => {}
        }
        if !self.examples.is_empty() {
            to.begin_list("examples");
            for (arguments, result) in self.examples {
                to.begin();
                to.json("arguments", arguments);
                if let Some(result) = result {
                    to.json("result", result);
                }
                to.end();
            }
            to.end_list();
        }
        to.end();
        Ok(())
    }
}

/// Decodes the arguments, calls the tool's function and encodes its result. What is refused here is what a schema can't
/// say, such as a number beyond 64 bits.
#[doc(hidden)]
pub fn run<A: DeserializeOwned, O: Outcome>(arguments: &[u8], tool: impl FnOnce(A) -> O) -> Result<Vec<u8>, Error> {
    let arguments = if arguments.is_empty() { b"{}" } else { arguments };
    let arguments = serde_json::from_slice(arguments)
        .map_err(|error| Error::new(format!("arguments: {error}")).code("invalid_arguments"))?;
    let result = tool(arguments).into_result()?;
    let broken = |why: &dyn Display| Error::broken(format!("the result can't be written as JSON: {why}"));
    let text = serde_json::to_vec(&result).map_err(|error| broken(&error))?;
    if text.windows(4).any(|part| part == b"null") && !finite::is_finite(&result) {
        return Err(broken(&"a number is not finite"));
    }
    Ok(text)
}
