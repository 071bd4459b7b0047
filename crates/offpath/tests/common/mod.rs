//! A program of ours for tests: how it ends, and whether its JSON follows docs/schemas.

#![allow(dead_code, reason = "each test uses a part of it")]

use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// How a command ended.
pub struct Answer {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    /// What it said of being at work.
    pub notes: String,
}

/// Runs it for a page as wide as it is drawn by itself. Where a file is named by its whole path the page is so wide that no
/// line is broken: lines would break by where the repository lies.
pub fn offpath(arguments: &[&str]) -> Answer {
    let whole_path = arguments.iter().any(|argument| Path::new(argument).is_absolute());
    in_columns(arguments, whole_path.then_some("2000"))
}

/// The program of the package that is tested: each has one.
fn program() -> Command {
    let own = option_env!("CARGO_BIN_EXE_offpath")
        .or(option_env!("CARGO_BIN_EXE_offpath-shard"))
        .or(option_env!("CARGO_BIN_EXE_offpath-relay"));
    Command::new(own.expect("cargo names the program to its tests"))
}

/// Runs it for a page of so many columns.
pub fn in_columns(arguments: &[&str], columns: Option<&str>) -> Answer {
    let mut command = program();
    if let Some(columns) = columns {
        command.env("COLUMNS", columns);
    }
    let output = command.args(arguments).output().expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text is UTF-8");
    let code = output.status.code().expect("the program ends by itself");
    // A command may say that it is at work: on a busy machine, or in phases.
    let (notes, stderr) = text(output.stderr)
        .split_inclusive('\n')
        .map(str::to_string)
        .partition::<Vec<_>, _>(|line| line.starts_with("note: at work"));
    Answer { code, stdout: text(output.stdout), stderr: stderr.concat(), notes: notes.concat() }
}

/// A message however its lines are broken.
pub fn unbroken(message: &str) -> String {
    message.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ")
}

/// What a command said on stderr, however its lines are broken.
pub fn said(answer: &Answer) -> String {
    unbroken(&answer.stderr)
}

/// The answer of a command line that is in order, on a page so wide that no line is broken, wherever the
/// files lie that it names.
#[allow(dead_code, reason = "each test uses a part")]
pub fn wide_answer(arguments: &[&str]) -> String {
    let answer = in_columns(arguments, Some("2000"));
    assert_eq!(answer.code, 0, "{arguments:?}: {}", answer.stderr);
    answer.stdout
}

/// The answer of a command line that is in order, as it is drawn by itself, whatever files it names.
#[allow(dead_code, reason = "each test uses a part")]
pub fn page(arguments: &[&str]) -> String {
    let answer = in_columns(arguments, None);
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{arguments:?}");
    answer.stdout
}

/// The answer of a command line that is in order.
pub fn answer(arguments: &[&str]) -> String {
    let answer = offpath(arguments);
    assert_eq!(answer.code, 0, "{arguments:?}: {}", answer.stderr);
    assert_eq!(answer.stderr, "", "{arguments:?}");
    answer.stdout
}

pub fn json(arguments: &[&str]) -> Value {
    let text = answer(&[arguments, &["--format", "json"]].concat());
    serde_json::from_str(&text).expect("the answer is JSON")
}

/// The answer of a command that measures time as it passes: it may warn that the machine was too busy.
#[allow(dead_code, reason = "each test uses a part")]
pub fn timed_json(arguments: &[&str]) -> Value {
    let answer = offpath(&[arguments, &["--format", "json"]].concat());
    assert_eq!(answer.code, 0, "{arguments:?}: {}", answer.stderr);
    assert!(answer.stderr.lines().all(|line| line.starts_with("warning: ")), "{}", answer.stderr);
    serde_json::from_str(&answer.stdout).expect("the answer is JSON")
}

/// Checks a value against the part of JSON Schema that docs/schemas uses, and that no key is
/// missing from the schema.
pub fn check(value: &Value, schema: &Value, at: &str) {
    if let Some(file) = schema["$ref"].as_str() {
        return check(value, &self::schema(file), at);
    }
    if let Some(constant) = schema.get("const") {
        return assert_eq!(value, constant, "{at}");
    }
    if let Some(known) = schema["enum"].as_array() {
        return assert!(known.contains(value), "{at}: {value} is none of {known:?}");
    }
    let types = match &schema["type"] {
        Value::Array(types) => types.clone(),
        one => vec![one.clone()],
    };
    if value.is_null() {
        return assert!(types.contains(&"null".into()), "{at} is null");
    }
    let own = match value {
        Value::Null => "null",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::Number(number) if number.is_u64() && !types.contains(&"number".into()) => "integer",
        Value::Number(_) => "number",
        Value::Bool(_) => "boolean",
    };
    assert!(types.contains(&own.into()), "{at}: {value} is a {own}, not of {types:?}");
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        check(item, &schema["items"], &format!("{at}[{index}]"));
    }
    for key in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        assert!(value.get(key).is_some(), "{at} lacks `{key}`");
    }
    for (key, item) in value.as_object().into_iter().flatten() {
        let known = schema["properties"].get(key).or(schema.get("additionalProperties"));
        check(
            item,
            known.unwrap_or_else(|| panic!("{at}: `{key}` is not in the schema")),
            &format!("{at}.{key}"),
        );
    }
}

pub fn schema(file: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas").join(file);
    let text = fs::read_to_string(&path).expect("the schema is there");
    serde_json::from_str(&text).expect("the schema is JSON")
}

/// Whether a page says something, wherever its lines break.
pub fn says(page: &str, what: &str) -> bool {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    words(page).contains(&words(what))
}
