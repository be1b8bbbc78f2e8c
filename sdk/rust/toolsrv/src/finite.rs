//! Numbers that JSON can't express. serde_json writes null for them where the schema promises a number.

use std::fmt;

use serde::ser::{self, Serialize};

/// Reports whether all floats of a value are finite. It walks the value, which for a type without floats compiles to
/// nothing.
pub(crate) fn is_finite(value: &impl Serialize) -> bool {
    value.serialize(Finite).is_ok()
}

/// A serializer that writes nothing, and fails at a float that is not finite.
struct Finite;

#[derive(Debug)]
struct NotFinite;

impl fmt::Display for NotFinite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number is not finite")
    }
}

impl std::error::Error for NotFinite {}

impl ser::Error for NotFinite {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

type Outcome = Result<(), NotFinite>;

fn check(finite: bool) -> Outcome {
    if finite { Ok(()) } else { Err(NotFinite) }
}

/// Writes methods that accept a value.
macro_rules! fine {
    ($($name:ident($($type:ty),*);)*) => {
        $(fn $name(self, $(_: $type),*) -> Outcome {
            Ok(())
        })*
    };
}

/// Writes methods that check the parts of a value.
macro_rules! parts {
    ($($name:ident($($type:ty),*) -> $part:ident;)*) => {
        $(fn $name(self, $(_: $type),*) -> Result<Self, NotFinite> {
            Ok(self)
        })*
        $(type $part = Self;)*
    };
}

type Name = &'static str;

impl ser::Serializer for Finite {
    type Ok = ();
    type Error = NotFinite;

    fn serialize_f32(self, v: f32) -> Outcome {
        check(v.is_finite())
    }

    fn serialize_f64(self, v: f64) -> Outcome {
        check(v.is_finite())
    }

    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Outcome {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(self, _: Name, value: &T) -> Outcome {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(self, _: Name, _: u32, _: Name, value: &T) -> Outcome {
        value.serialize(self)
    }

    fn collect_str<T: ?Sized + fmt::Display>(self, _: &T) -> Outcome {
        Ok(())
    }

    fine! {
        serialize_bool(bool);
        serialize_i8(i8);
        serialize_i16(i16);
        serialize_i32(i32);
        serialize_i64(i64);
        serialize_i128(i128);
        serialize_u8(u8);
        serialize_u16(u16);
        serialize_u32(u32);
        serialize_u64(u64);
        serialize_u128(u128);
        serialize_char(char);
        serialize_str(&str);
        serialize_bytes(&[u8]);
        serialize_none();
        serialize_unit();
        serialize_unit_struct(Name);
        serialize_unit_variant(Name, u32, Name);
    }

    parts! {
        serialize_seq(Option<usize>) -> SerializeSeq;
        serialize_tuple(usize) -> SerializeTuple;
        serialize_tuple_struct(Name, usize) -> SerializeTupleStruct;
        serialize_tuple_variant(Name, u32, Name, usize) -> SerializeTupleVariant;
        serialize_map(Option<usize>) -> SerializeMap;
        serialize_struct(Name, usize) -> SerializeStruct;
        serialize_struct_variant(Name, u32, Name, usize) -> SerializeStructVariant;
    }
}

/// Implements the traits of composite values. Keys are strings in JSON, so only values can be wrong.
macro_rules! composite {
    ($($trait:ident: $method:ident($($name:ty)?);)*) => {$(
        impl ser::$trait for Finite {
            type Ok = ();
            type Error = NotFinite;

            fn $method<T: ?Sized + Serialize>(&mut self, $(_: $name,)? value: &T) -> Outcome {
                value.serialize(Finite)
            }

            fn end(self) -> Outcome {
                Ok(())
            }
        }
    )*};
}

composite! {
    SerializeSeq: serialize_element();
    SerializeTuple: serialize_element();
    SerializeTupleStruct: serialize_field();
    SerializeTupleVariant: serialize_field();
    SerializeStruct: serialize_field(Name);
    SerializeStructVariant: serialize_field(Name);
}

impl ser::SerializeMap for Finite {
    type Ok = ();
    type Error = NotFinite;

    fn serialize_key<T: ?Sized + Serialize>(&mut self, _: &T) -> Outcome {
        Ok(())
    }

    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Outcome {
        value.serialize(Finite)
    }

    fn end(self) -> Outcome {
        Ok(())
    }
}
