//! JSON Schemas of types, in the form that all SDKs of toolsrv share: equal types have equal schemas in each language,
//! and clients that know little of JSON Schema understand them.
//!
//! `schemars` derives; what follows here makes of its schema the shared one. A format that names a machine type becomes
//! bounds, a type that is a plain value is written where it is used, a `$ref` has no siblings, and members of a struct that
//! the type does not have are refused in arguments.

use schemars::generate::{Contract, SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

use crate::prose;

type Object = Map<String, Value>;

/// What a `$ref` begins with.
const DEFINITIONS: &str = "#/$defs/";

/// The order of members, as people read them. What is not here comes last.
#[rustfmt::skip]
const ORDER: &[&str] = &[
    "$ref", "title", "type", "description", "allOf", "anyOf", "oneOf", "format", "contentEncoding",
    "contentMediaType", "pattern", "const", "enum",
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "prefixItems", "items",
    "minItems", "maxItems", "uniqueItems", "properties", "required", "propertyNames", "additionalProperties", "default", "examples",
];

/// Members that hold one schema, several in a list, or several by name.
#[rustfmt::skip]
const ONE: &[&str] = &[
    "items", "additionalProperties", "unevaluatedProperties", "propertyNames", "contains", "not", "if", "then", "else",
];
const LISTED: &[&str] = &["allOf", "anyOf", "oneOf", "prefixItems"];
const NAMED: &[&str] = &["properties", "patternProperties", "dependentSchemas"];

/// Machine types by the name that `schemars` gives them as a format, with their bounds. 64 bits have none but 0, as in
/// the other SDKs. A `usize` has the 32 bits of WebAssembly wherever the schema is derived.
const FORMATS: &[(&str, Option<i64>, Option<i64>)] = &[
    ("int8", Some(i8::MIN as i64), Some(i8::MAX as i64)),
    ("int16", Some(i16::MIN as i64), Some(i16::MAX as i64)),
    ("int32", Some(i32::MIN as i64), Some(i32::MAX as i64)),
    ("int", Some(i32::MIN as i64), Some(i32::MAX as i64)),
    ("int64", None, None),
    ("int128", None, None),
    ("uint8", Some(0), Some(u8::MAX as i64)),
    ("uint16", Some(0), Some(u16::MAX as i64)),
    ("uint32", Some(0), Some(u32::MAX as i64)),
    ("uint", Some(0), Some(u32::MAX as i64)),
    ("uint64", Some(0), None),
    ("uint128", Some(0), None),
    ("float", None, None),
    ("double", None, None),
];

/// Returns the schema of a tool's arguments.
pub(crate) fn of_arguments<T: JsonSchema>() -> Value {
    derive(true, T::json_schema)
}

/// Returns the schema of a tool's result.
pub(crate) fn of_result<T: JsonSchema>() -> Value {
    derive(false, T::json_schema)
}

/// Reports whether values of a schema are objects.
pub(crate) fn is_object(schema: &Value) -> bool {
    schema.get("type").is_some_and(|t| t == "object")
}

fn derive(arguments: bool, schema: fn(&mut SchemaGenerator) -> Schema) -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.contract = if arguments { Contract::Deserialize } else { Contract::Serialize };
    let mut generator = settings.into_generator();
    let root = schema(&mut generator).to_value();
    let shaper = Shaper { arguments, definitions: generator.take_definitions(false) };
    shaper.root(root)
}

/// A `Shaper` makes the shared form of what `schemars` derived.
struct Shaper {
    arguments: bool,
    definitions: Object,
}

impl Shaper {
    /// Returns the whole schema. The root is not a reference: clients look for its properties.
    fn root(&self, mut root: Value) -> Value {
        for _ in &self.definitions {
            // a new type can wrap another, but not for ever
            match root.as_object().and_then(|object| self.target(object)) {
                Some(target) => root = target.clone().into(),
                None => break,
            }
        }
        let mut root = self.schema(root, true);
        let mut used = Vec::new();
        references(&root, &mut used);
        if let Value::Object(object) = &mut root {
            if !object.contains_key("type") && all_objects(object) {
                set(object, "type", "object".into());
                sort(object);
            }
            let definitions = self.definitions(used);
            if !definitions.is_empty() {
                set(object, "$defs", definitions.into());
            }
        }
        root
    }

    /// Returns the definitions that are used, and those that they use, in the order of their first use.
    fn definitions(&self, mut used: Vec<String>) -> Object {
        let mut i = 0;
        while let Some(name) = used.get(i) {
            if let Some(definition) = self.definitions.get(name) {
                references(&self.schema(definition.clone(), true), &mut used);
            }
            i += 1;
        }
        let mut out = Object::new();
        for (name, definition) in &self.definitions {
            if used.contains(name) {
                set(&mut out, name, self.schema(definition.clone(), true));
            }
        }
        out
    }

    /// Returns the definition that a schema refers to.
    fn target(&self, schema: &Object) -> Option<&Object> {
        self.definitions.get(schema.get("$ref")?.as_str()?.strip_prefix(DEFINITIONS)?)?.as_object()
    }

    /// Returns a schema in the shared form. Where it is not `whole`, another schema beside it has members of the same
    /// object, and it must not refuse them.
    fn schema(&self, schema: Value, whole: bool) -> Value {
        let mut object = match schema {
            Value::Object(object) => object,
            Value::Bool(true) => return Object::new().into(),
            other => return other,
        };
        self.resolve(&mut object);
        if let Some(Value::String(text)) = object.get_mut("description") {
            *text = prose::flowed(text);
        }
        machine_type(&mut object);
        let composite = object.contains_key("properties") && LISTED.iter().any(|key| object.contains_key(*key));
        self.subschemas(&mut object, whole && !composite);
        name_values(&mut object);
        self.nullable(&mut object);
        number_keys(&mut object);
        self.close(&mut object, whole && !composite);
        if object.get("items").is_some_and(is_free) {
            object.remove("items");
        }
        if object.get("default").is_some_and(Value::is_null) {
            object.remove("default"); // what is missing is None anyway
        }
        stand_alone(&mut object);
        sort(&mut object);
        Value::Object(object)
    }

    /// Puts the target in place of a reference where it is a plain value, or where the reference has members beside it
    /// that say more of the same object.
    fn resolve(&self, object: &mut Object) {
        let Some(target) = self.target(object) else {
            return;
        };
        if !is_plain(target) && !object.contains_key("properties") {
            return;
        }
        object.remove("$ref");
        for (key, value) in target {
            match (object.get_mut(key), value) {
                (Some(Value::Object(own)), Value::Object(more)) => {
                    for (name, schema) in more {
                        set(own, name, schema.clone());
                    }
                }
                (Some(Value::Array(own)), Value::Array(more)) => own.extend(more.clone()),
                (Some(_), _) => {}
                (None, _) => set(object, key, value.clone()),
            }
        }
    }

    /// Shapes the schemas within a schema.
    fn subschemas(&self, object: &mut Object, whole: bool) {
        for (key, value) in object.iter_mut() {
            let key = key.as_str();
            match value {
                Value::Array(list) if LISTED.contains(&key) => {
                    for schema in list {
                        *schema = self.schema(schema.take(), whole || key == "prefixItems");
                    }
                }
                Value::Object(map) if NAMED.contains(&key) => {
                    for schema in map.values_mut() {
                        *schema = self.schema(schema.take(), true);
                    }
                }
                Value::Object(_) | Value::Bool(true) if ONE.contains(&key) => {
                    *value = self.schema(value.take(), true);
                }
                _ => {}
            }
        }
    }

    /// Writes "this or null" as a list of types where that is possible. Arguments of a definition take no null: that
    /// would take an anyOf, and no default is filled in below one.
    fn nullable(&self, object: &mut Object) {
        let Some(Value::Array(options)) = object.get("anyOf") else {
            return;
        };
        let [Value::Object(other), null] = options.as_slice() else {
            return;
        };
        if null.get("type").is_none_or(|kind| kind != "null") {
            return;
        }
        let mut other = other.clone();
        if other.contains_key("$ref") || other.contains_key("allOf") {
            if !self.arguments {
                return;
            }
        } else if let Some(Value::String(kind)) = other.get("type") {
            let kinds = vec![Value::from(kind.as_str()), "null".into()];
            set(&mut other, "type", kinds.into());
            if let Some(Value::Array(values)) = other.get_mut("enum") {
                values.push(Value::Null);
            }
        } else if !other.is_empty() {
            return;
        }
        object.remove("anyOf");
        for (key, value) in other {
            if !object.contains_key(&key) {
                set(object, &key, value);
            }
        }
    }

    /// Has a struct refuse members that it does not have, in arguments: a misspelt one is reported, not dropped.
    fn close(&self, object: &mut Object, whole: bool) {
        match object.get("additionalProperties") {
            Some(rest) if is_free(rest) => {
                object.remove("additionalProperties");
            }
            Some(Value::Bool(false)) if !self.arguments => {
                object.remove("additionalProperties");
            }
            None if self.arguments && whole && object.get("type").is_some_and(has_object) => {
                set(object, "additionalProperties", false.into());
            }
            _ => {}
        }
    }
}

/// Returns an object with one member.
fn object_of(key: &str, value: Value) -> Value {
    let mut object = Object::new();
    set(&mut object, key, value);
    object.into()
}

fn has_object(kind: &Value) -> bool {
    kind == "object" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "object"))
}

/// Reports whether a schema accepts everything and says nothing.
pub(crate) fn is_free(schema: &Value) -> bool {
    *schema == Value::Bool(true) || schema.as_object().is_some_and(Object::is_empty)
}

/// Reports whether each variant of a schema is an object.
fn all_objects(object: &Object) -> bool {
    ["oneOf", "anyOf"].iter().any(|key| {
        object
            .get(*key)
            .and_then(Value::as_array)
            .is_some_and(|variants| !variants.is_empty() && variants.iter().all(is_object))
    })
}

/// Reports whether a definition is that of a plain value, such as an enum without data or a new type of a string.
fn is_plain(definition: &Object) -> bool {
    match definition.get("type") {
        Some(Value::String(kind)) => matches!(kind.as_str(), "string" | "integer" | "number" | "boolean" | "null"),
        _ => named_values(definition).is_some(),
    }
}

/// Returns the variants of an enum of strings, some of them described.
fn named_values(object: &Object) -> Option<Vec<(&Value, Option<&str>)>> {
    let mut out = Vec::new();
    for variant in object.get("oneOf")?.as_array()? {
        if variant.get("type")? != "string" {
            return None;
        }
        let description = variant.get("description").and_then(Value::as_str);
        match variant.get("enum") {
            Some(values) => out.extend(values.as_array()?.iter().map(|value| (value, description))),
            None => out.push((variant.get("const")?, description)),
        }
    }
    Some(out)
}

/// Makes an `enum` of an enum with described variants; the descriptions go into that of the whole.
fn name_values(object: &mut Object) {
    let Some(variants) = named_values(object) else {
        return;
    };
    let values: Vec<Value> = variants.iter().map(|(value, _)| (*value).clone()).collect();
    let mut lines: Vec<String> =
        object.get("description").and_then(Value::as_str).map(String::from).into_iter().collect();
    for (value, description) in variants {
        if let (Some(value), Some(description)) = (value.as_str(), description) {
            lines.push(format!("- {value}: {description}"));
        }
    }
    object.remove("oneOf");
    set(object, "type", "string".into());
    set(object, "enum", values.into());
    if !lines.is_empty() {
        set(object, "description", lines.join("\n").into());
    }
}

/// Turns a format that names a machine type into bounds.
fn machine_type(object: &mut Object) {
    let Some(format) = object.get("format").and_then(Value::as_str) else {
        return;
    };
    let Some((_, minimum, maximum)) = FORMATS.iter().find(|(name, _, _)| *name == format) else {
        return;
    };
    object.remove("format");
    for (key, bound) in [("minimum", *minimum), ("maximum", *maximum)] {
        match bound {
            Some(bound) if !object.contains_key(key) => set(object, key, bound.into()),
            _ => {}
        }
    }
}

/// Describes the keys of a map whose keys are numbers, in place of a pattern with the values' schema.
fn number_keys(object: &mut Object) {
    let Some(patterns) = object.get("patternProperties").and_then(Value::as_object) else {
        return;
    };
    let mut patterns = patterns.iter();
    let (Some((pattern, values)), None) = (patterns.next(), patterns.next()) else {
        return;
    };
    let pattern = match pattern.as_str() {
        r"^\d+$" => "^[0-9]+$",
        r"^-?\d+$" => "^-?[0-9]+$",
        _ => return,
    };
    let values = values.clone();
    object.remove("patternProperties");
    set(object, "propertyNames", object_of("pattern", pattern.into()));
    set(object, "additionalProperties", values);
}

/// Moves what is beside a `$ref`: some clients look at nothing beside it.
fn stand_alone(object: &mut Object) {
    if object.len() > 1 {
        if let Some(reference) = object.remove("$ref") {
            set(object, "allOf", vec![object_of("$ref", reference)].into());
        }
    }
}

/// Puts the members into the order in which people read them.
fn sort(object: &mut Object) {
    let mut rest = std::mem::take(object);
    for key in ORDER {
        if let Some(value) = rest.remove(*key) {
            set(object, key, value);
        }
    }
    for (key, value) in rest {
        set(object, &key, value);
    }
}

/// Adds the names of the definitions that a schema refers to, each once.
fn references(schema: &Value, to: &mut Vec<String>) {
    match schema {
        Value::String(text) => {
            if let Some(name) = text.strip_prefix(DEFINITIONS) {
                if !to.iter().any(|known| known == name) {
                    to.push(name.into());
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|schema| references(schema, to)),
        Value::Object(object) => object.values().for_each(|schema| references(schema, to)),
        _ => {}
    }
}

/// Sets a member. It is neither generic nor inlined, which keeps modules small.
#[inline(never)]
fn set(object: &mut Object, key: &str, value: Value) {
    object.insert(key.into(), value);
}
