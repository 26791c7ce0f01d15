//! Specifications in TOML and other formats: a string, or a table with a key for each field.
//!
//! Errors are returned while the key or value is parsed, so that the format can add its line.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::error::shortened;
use super::fields::find;
use super::parse::{Reader, known, not_on_one_direction};
use super::{DuplexSpec, LinkSpec, NatSpec, SpecError};
use crate::suggest::nearest;

impl<'de> Deserialize<'de> for LinkSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneDirection)
    }
}

impl<'de> Deserialize<'de> for DuplexSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BothDirections)
    }
}

impl Serialize for LinkSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for DuplexSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

struct OneDirection;

impl<'de> Visitor<'de> for OneDirection {
    type Value = LinkSpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a link such as \"20mbit,40ms,1%\" or a table such as { rate = \"20mbit\" }")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<LinkSpec, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LinkSpec, A::Error> {
        let mut reader = Reader::default();
        while let Some(name) = map.next_key_seed(Name(&["then"]))? {
            read_entry(&mut map, &mut reader, &name)?;
        }
        match reader.finish().map_err(A::Error::custom)? {
            (spec, None) => Ok(spec),
            (_, Some(_)) => Err(A::Error::custom(not_on_one_direction())),
        }
    }
}

struct BothDirections;

impl<'de> Visitor<'de> for BothDirections {
    type Value = DuplexSpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a link such as \"20mbit,40ms,1%\", a table such as { rate = \"20mbit\" }, or \
             { forward = ..., back = ... }",
        )
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<DuplexSpec, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<DuplexSpec, A::Error> {
        let mut both = Reader::default();
        let mut has_fields = false;
        let (mut forward, mut back) = (None, None);
        while let Some(name) = map.next_key_seed(Name(&["forward", "back", "then"]))? {
            match name.as_str() {
                "forward" => forward = Some(map.next_value::<LinkSpec>()?),
                "back" => back = Some(map.next_value::<LinkSpec>()?),
                name => {
                    has_fields |= name != "rebind";
                    read_entry(&mut map, &mut both, name)?;
                }
            }
        }
        let (spec, nat) = both.finish().map_err(A::Error::custom)?;
        directions(spec, nat, has_fields, (forward, back)).map_err(A::Error::custom)
    }
}

/// Combines fields for both directions, or a specification for each.
fn directions(
    spec: LinkSpec,
    nat: Option<NatSpec>,
    has_fields: bool,
    (forward, back): (Option<LinkSpec>, Option<LinkSpec>),
) -> Result<DuplexSpec, SpecError> {
    if has_fields && forward.is_some() {
        let problem = "is given beside fields of a link: put them into forward and back";
        return Err(SpecError::new("forward", problem));
    }
    let forward = forward.unwrap_or(spec);
    let back = back.unwrap_or_else(|| forward.clone());
    Ok(DuplexSpec { forward, back, nat })
}

fn read_entry<'de, A: MapAccess<'de>>(
    map: &mut A,
    reader: &mut Reader,
    name: &str,
) -> Result<(), A::Error> {
    if name == "then" {
        reader.chain(map.next_value::<LinkSpec>()?);
        return Ok(());
    }
    map.next_value_seed(FieldValue { reader, name })
}

/// A key: the name of a field, or one of the additional names.
struct Name(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Name {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        let name = String::deserialize(deserializer)?;
        let field = name.split_once('@').map_or(name.as_str(), |(name, _)| name);
        if self.0.contains(&name.as_str()) {
            return Ok(name);
        }
        if let Err(error) = known(field) {
            let other = nearest(field, self.0.iter().copied());
            return Err(match other {
                Some(meant) => D::Error::custom(format!(
                    "unknown field '{}', did you mean '{meant}'?",
                    shortened(field)
                )),
                None => D::Error::custom(error),
            });
        }
        Ok(name)
    }
}

/// The value of a field: text as on the command line, a number, or a list of numbers.
struct FieldValue<'a> {
    reader: &'a mut Reader,
    name: &'a str,
}

impl FieldValue<'_> {
    fn read<E: Error>(self, text: &str) -> Result<(), E> {
        self.reader.field(self.name, text).map_err(E::custom)
    }
}

impl<'de> DeserializeSeed<'de> for FieldValue<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for FieldValue<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = self
            .name
            .split_once('@')
            .map_or(self.name, |(name, _)| name);
        match find(field) {
            Some(field) => write!(f, "{}", field.allowed),
            None => f.write_str("text or a number"),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.read(text.trim())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.read(&number.to_string())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.read(&number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        self.read(&number.to_string())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut texts: Vec<String> = Vec::new();
        while let Some(item) = list.next_element::<Item>()? {
            texts.push(item.0);
        }
        self.read(&texts.join(","))
    }
}

/// An item of a list: a number, or the text of a range.
struct Item(String);

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Item;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or a range such as \"2-7\"")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Item, E> {
                Ok(Item(text.to_owned()))
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Item, E> {
                Ok(Item(number.to_string()))
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Item, E> {
                Ok(Item(number.to_string()))
            }
        }
        deserializer.deserialize_any(Text)
    }
}
