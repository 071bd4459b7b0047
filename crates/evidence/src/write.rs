//! Writes fitted numbers into the text of a profile.

use crate::fit::Fitted;
use crate::specification::Parameter;
use toml_edit::{Array, DocumentMut, InlineTable, Value};

/// Why a profile's text cannot take the fitted numbers.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The text is not TOML.
    #[error("{file}: {message}")]
    Malformed {
        /// The file.
        file: String,
        /// What is wrong.
        message: String,
    },
    /// It has no such number.
    #[error("{file} has no number `{key}`; evidence/fit.toml frees it")]
    Missing {
        /// The file.
        file: String,
        /// The number.
        key: String,
    },
}

/// The files that hold free parameters, in the order of their names.
pub fn files(fitted: &Fitted) -> Vec<String> {
    let places = fitted
        .parameters
        .iter()
        .flat_map(|one| std::iter::once(&one.parameter.place).chain(&one.parameter.also));
    let mut files: Vec<String> = places.map(|place| place.file.clone()).collect();
    files.sort();
    files.dedup();
    files
}

/// The text of the profile `file` with the fitted values, their intervals and rows. Everything else
/// stays as it is, comments included; the same input gives the same bytes.
///
/// # Errors
/// [`WriteError`] where the text is not TOML or lacks a fitted number.
pub fn write(text: &str, fitted: &Fitted, file: &str) -> Result<String, WriteError> {
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        WriteError::Malformed { file: file.to_string(), message: error.to_string() }
    })?;
    for one in &fitted.parameters {
        let places = std::iter::once(&one.parameter.place).chain(&one.parameter.also);
        for place in places.filter(|place| place.file == file) {
            let missing = || WriteError::Missing { file: file.to_string(), key: place.key.clone() };
            let (table, key) = place.key.rsplit_once('.').ok_or_else(missing)?;
            let value = document
                .get_mut(table)
                .and_then(|table| table.get_mut(key))
                .and_then(|item| item.as_value_mut())
                .ok_or_else(missing)?;
            let decor = value.decor().clone();
            let number = value.as_inline_table().ok_or_else(missing)?;
            let mut written = InlineTable::new();
            for (key, base) in [("value", one.value), ("low", one.alone.low), ("high", one.alone.high)] {
                written.insert(key, quantity(&one.parameter, base));
            }
            for (key, old) in number.iter() {
                let mut value = match key {
                    "value" | "low" | "high" | "rows" => continue,
                    "provenance" => Value::from(if one.is_identified() { "fitted" } else { "assumed" }),
                    _ => old.clone(),
                };
                value.decor_mut().clear();
                written.insert(key, value);
                if key == "provenance" && one.is_identified() {
                    written.insert(
                        "rows",
                        Value::from(one.alone.rows.iter().map(String::as_str).collect::<Array>()),
                    );
                }
            }
            *value = Value::InlineTable(written);
            *value.decor_mut() = decor;
        }
    }
    Ok(document.to_string())
}

fn quantity(parameter: &Parameter, base: f64) -> Value {
    let text = parameter.written(base);
    match text.parse::<i64>() {
        Ok(count) => Value::from(count),
        Err(_) => Value::from(text),
    }
}
