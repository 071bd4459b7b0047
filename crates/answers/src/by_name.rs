//! Values by name, in the order of the answer.

use serde::{Serialize, Serializer};

/// Values by name, in the order of the answer; an object in JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct ByName<T>(pub Vec<(String, T)>);

impl<T> Default for ByName<T> {
    fn default() -> ByName<T> {
        ByName(Vec::new())
    }
}

impl<T> ByName<T> {
    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, value)| value)
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names and values in their order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&String, &T)> + Clone {
        self.0.iter().map(|(name, value)| (name, value))
    }
}

impl<T> FromIterator<(String, T)> for ByName<T> {
    fn from_iter<I: IntoIterator<Item = (String, T)>>(all: I) -> ByName<T> {
        ByName(all.into_iter().collect())
    }
}

impl<T: Serialize> Serialize for ByName<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

#[cfg(test)]
impl<T: schemars::JsonSchema> schemars::JsonSchema for ByName<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("ByName{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        std::collections::BTreeMap::<String, T>::json_schema(generator)
    }
}
