//! JSON Schemas of types, in the form that all SDKs of toolsrv share: equal types have equal schemas in each language,
//! and clients that know little of JSON Schema understand them.
//!
//! `schemars` derives; what follows here makes of its schema the shared one. A format that names a machine type becomes
//! bounds, a type that is a plain value stands where it is used, a `$ref` stands alone, and members of a struct that
//! the type does not have are refused in arguments.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

type Object = Map<String, Value>;

/// What a `$ref` begins with.
const DEFINITIONS: &str = "#/$defs/";

/// The order of members, as people read them. What is not here comes before the last.
const ORDER: &[&str] = &[
    "$ref",
    "title",
    "type",
    "description",
    "allOf",
    "anyOf",
    "oneOf",
    "format",
    "contentEncoding",
    "pattern",
    "const",
    "enum",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "prefixItems",
    "items",
    "minItems",
    "maxItems",
    "uniqueItems",
    "properties",
    "required",
    "propertyNames",
    "additionalProperties",
    "default",
    "examples",
];

/// Members that hold one schema, several in a list, or several by name.
const ONE: &[&str] = &[
    "items",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "contains",
    "not",
    "if",
    "then",
    "else",
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
    derive(SchemaSettings::draft2020_12().for_deserialize(), true, T::json_schema)
}

/// Returns the schema of a tool's result, or `None` where it would say nothing.
pub(crate) fn of_result<T: JsonSchema>() -> Option<Value> {
    let schema = derive(SchemaSettings::draft2020_12().for_serialize(), false, T::json_schema);
    (schema != json!({})).then_some(schema)
}

/// Reports whether values of a schema are objects.
pub(crate) fn is_object(schema: &Value) -> bool {
    schema.get("type").is_some_and(|t| t == "object")
}

fn derive(settings: SchemaSettings, arguments: bool, schema: fn(&mut SchemaGenerator) -> Schema) -> Value {
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
    /// Returns the whole schema. The root is no reference: clients look for its properties.
    fn root(&self, mut root: Value) -> Value {
        while let Some(target) = self.target(&root) {
            root = target.clone();
        }
        let mut root = self.schema(root, true);
        if let Some(object) = root.as_object_mut() {
            if !object.contains_key("type") && all_objects(object) {
                object.insert("type".into(), "object".into());
                sort(object);
            }
            let definitions = self.used(object);
            if !definitions.is_empty() {
                object.insert("$defs".into(), definitions.into());
            }
        }
        root
    }

    /// Returns the definitions that `root` needs, shaped, in the order of `schemars`: that of their first use.
    fn used(&self, root: &Object) -> Object {
        let mut found = Object::new();
        let mut todo = Vec::new();
        references(root, &mut todo);
        while let Some(name) = todo.pop() {
            if found.contains_key(&name) {
                continue;
            }
            if let Some(definition) = self.definitions.get(&name) {
                let shaped = self.schema(definition.clone(), true);
                if let Some(object) = shaped.as_object() {
                    references(object, &mut todo);
                }
                found.insert(name, shaped);
            }
        }
        self.definitions.keys().filter_map(|name| found.remove_entry(name)).collect()
    }

    /// Returns the definition that a schema refers to.
    fn target(&self, schema: &Value) -> Option<&Value> {
        self.definitions.get(schema.get("$ref")?.as_str()?.strip_prefix(DEFINITIONS)?)
    }

    /// Returns a schema in the shared form. Where it is not `whole`, another schema beside it has members of the same
    /// object, and it must not refuse them.
    fn schema(&self, schema: Value, whole: bool) -> Value {
        let mut object = match schema {
            Value::Object(object) => object,
            Value::Bool(true) => return json!({}),
            other => return other,
        };
        self.resolve(&mut object);
        machine_type(&mut object);
        let composite = object.contains_key("properties") && LISTED.iter().any(|key| object.contains_key(*key));
        self.subschemas(&mut object, whole && !composite);
        name_values(&mut object);
        self.nullable(&mut object);
        number_keys(&mut object);
        self.close(&mut object, whole && !composite);
        stand_alone(&mut object);
        if object.get("items").is_some_and(is_free) {
            object.remove("items");
        }
        if object.get("default").is_some_and(Value::is_null) {
            object.remove("default"); // what is missing is None anyway
        }
        sort(&mut object);
        Value::Object(object)
    }

    /// Puts the target in place of a reference where it is a plain value, or where the reference has members beside it
    /// that say more of the same object.
    fn resolve(&self, object: &mut Object) {
        let Some(target) = object.get("$ref").and_then(|_| self.target(&Value::Object(object.clone()))) else {
            return;
        };
        let Value::Object(target) = target else {
            return;
        };
        if !is_plain(target) && !object.contains_key("properties") {
            return;
        }
        object.remove("$ref");
        for (key, value) in target {
            match (object.get_mut(key), value) {
                (Some(Value::Object(own)), Value::Object(more)) => own.extend(more.clone()),
                (Some(Value::Array(own)), Value::Array(more)) => own.extend(more.clone()),
                (Some(_), _) => {}
                (None, _) => {
                    object.insert(key.clone(), value.clone());
                }
            }
        }
    }

    fn subschemas(&self, object: &mut Object, whole: bool) {
        for (key, value) in object.iter_mut() {
            let key = key.as_str();
            let part = LISTED.contains(&key) && key != "prefixItems";
            match value {
                Value::Array(list) if LISTED.contains(&key) => {
                    for schema in list {
                        *schema = self.schema(schema.take(), whole || !part);
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
        if *null != json!({"type": "null"}) {
            return;
        }
        let mut other = other.clone();
        if other.contains_key("$ref") || other.contains_key("allOf") {
            if !self.arguments {
                return;
            }
        } else if let Some(Value::String(kind)) = other.get("type") {
            let kinds = json!([kind, "null"]);
            other.insert("type".into(), kinds);
            if let Some(Value::Array(values)) = other.get_mut("enum") {
                values.push(Value::Null);
            }
        } else if !other.is_empty() {
            return;
        }
        object.remove("anyOf");
        for (key, value) in other {
            object.entry(key).or_insert(value);
        }
    }

    /// Has a struct refuse members that it does not have, in arguments: a misspelt one is told, not dropped.
    fn close(&self, object: &mut Object, whole: bool) {
        match object.get("additionalProperties") {
            Some(rest) if is_free(rest) => {
                object.remove("additionalProperties");
            }
            Some(Value::Bool(false)) if !self.arguments => {
                object.remove("additionalProperties");
            }
            None if self.arguments && whole && object.get("type").is_some_and(has_object) => {
                object.insert("additionalProperties".into(), false.into());
            }
            _ => {}
        }
    }
}

fn has_object(kind: &Value) -> bool {
    kind == "object" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "object"))
}

/// Reports whether a schema accepts everything and says nothing.
fn is_free(schema: &Value) -> bool {
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
        Some(Value::String(kind)) => matches!(kind.as_str(), "string" | "integer" | "number" | "boolean"),
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
    object.insert("type".into(), "string".into());
    object.insert("enum".into(), values.into());
    if !lines.is_empty() {
        object.insert("description".into(), lines.join("\n").into());
    }
}

/// Makes bounds of a format that names a machine type.
fn machine_type(object: &mut Object) {
    let Some(format) = object.get("format").and_then(Value::as_str) else {
        return;
    };
    let Some((_, minimum, maximum)) = FORMATS.iter().find(|(name, _, _)| *name == format) else {
        return;
    };
    object.remove("format");
    if let Some(minimum) = minimum {
        object.entry("minimum").or_insert_with(|| (*minimum).into());
    }
    if let Some(maximum) = maximum {
        object.entry("maximum").or_insert_with(|| (*maximum).into());
    }
}

/// Says of a map with numbers as its keys what its keys are, in place of a pattern with the values' schema.
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
    object.insert("propertyNames".into(), json!({"pattern": pattern}));
    object.insert("additionalProperties".into(), values);
}

/// Has a `$ref` stand alone: some clients look at nothing beside it.
fn stand_alone(object: &mut Object) {
    if object.len() > 1 {
        if let Some(reference) = object.remove("$ref") {
            object.insert("allOf".into(), json!([{"$ref": reference}]));
        }
    }
}

/// Puts the members into the order in which people read them.
fn sort(object: &mut Object) {
    let mut rest = std::mem::take(object);
    for key in ORDER {
        if let Some((key, value)) = rest.remove_entry(*key) {
            object.insert(key, value);
        }
    }
    object.append(&mut rest);
}

/// Adds the names of the definitions that a schema refers to.
fn references(object: &Object, to: &mut Vec<String>) {
    fn walk(value: &Value, to: &mut Vec<String>) {
        match value {
            Value::Array(list) => list.iter().for_each(|value| walk(value, to)),
            Value::Object(object) => references(object, to),
            _ => {}
        }
    }
    if let Some(name) = object.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix(DEFINITIONS)) {
        to.push(name.to_string());
    }
    object.values().for_each(|value| walk(value, to));
}
