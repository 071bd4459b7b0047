//! docs/schemas follows from the types: `UPDATE_SCHEMAS=1 cargo test --release -p offpath-answers schemas` writes the files, and the
//! test without it compares them.

use crate::calibrate::CalibrateAnswer;
use crate::check::CheckAnswer;
use crate::compare::CompareAnswer;
use crate::device::{DeviceAnswer, ListAnswer};
use crate::diagnose::DiagnoseAnswer;
use crate::explain::ExplainAnswer;
use crate::export::UcxAnswer;
use crate::fit::FitAnswer;
use crate::import::{ImportAnswer, RankAnswer};
use crate::machine::{CollectAnswer, NewDeviceAnswer};
use crate::measure::{MeasureAnswer, MeasureListAnswer, MeasureSuggestAnswer};
use crate::path::{PathAnswer, PathsAnswer};
use crate::plan::PlanAnswer;
use crate::reproduce::{BesideAnswer, ReproduceAnswer};
use crate::sweep::SweepAnswer;
use crate::tool::ToolAnswer;
use crate::torture::TortureAnswer;
use crate::watch::WatchAnswer;
use crate::whatif::WhatIfAnswer;
use offpath_apps::Shipped;
use offpath_apps::system::Registry;
use offpath_route::VERBS;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::Value;
use std::path::Path;

/// The schema of an answer as a file: nothing refers elsewhere, and what is left out is never null.
fn schema<A: JsonSchema>(title: &str) -> String {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings = settings.with(|settings| settings.inline_subschemas = true);
    let mut schema: Schema = settings.into_generator().into_root_schema_for::<A>();
    schema.insert("title".into(), title.into());
    let mut value = schema.to_value();
    tidy(&mut value);
    serde_json::to_string_pretty(&value).expect("a schema is JSON") + "\n"
}

/// Names of verbs.
pub fn verbs() -> Vec<&'static str> {
    VERBS.iter().map(|row| row.name).collect()
}

/// Names of systems.
pub fn systems() -> Vec<&'static str> {
    Shipped::all().into_iter().map(|about| about.name).collect()
}

/// How well the cost of an operation may be known: without a design around it no evidence is about it.
pub const BASES: [&str; 4] = ["predicted", "weak", "your estimate", "order only"];

/// What sort of claim a published row is.
pub const KINDS: [&str; 6] = ["config", "measurement", "ratio", "threshold", "formula", "ordering"];

/// What a published row is used for.
pub const ROLES: [&str; 6] = ["fit", "predict", "conflict", "not_modelled", "read", "setting"];

/// The parts of the score, and that a row counts in none.
pub const SORTS: [Option<&str>; 9] = [
    Some("measured"),
    Some("order"),
    Some("restated"),
    Some("fitted"),
    Some("unfitted"),
    Some("unfitted-restated"),
    Some("read"),
    Some("exact"),
    None,
];

/// Marks a key that is left out or null: one of what is flattened into another answer where there is any.
const NULL_TOO: &str = "null-too";

/// Says what serde does, in the words of docs/schemas.
fn tidy(value: &mut Value) {
    if let Some(object) = value.as_object_mut() {
        // Words of a type stand in a list, whose type is said by the words.
        if let Some(Value::Array(words)) = object.remove("oneOf") {
            object.insert("enum".into(), words.iter().map(|word| word["const"].clone()).collect());
        }
        if object.contains_key("enum") || object.contains_key("const") {
            object.retain(|key, _| !["type", "minimum"].contains(&key.as_str()));
        }
        // How many there are of what the type lists is not promised.
        object.retain(|key, _| !["minItems", "maxItems"].contains(&key.as_str()));
        // Widths of integers and floats are the types' business.
        object.remove("format");
        if let Some(Value::String(description)) = object.get_mut("description") {
            *description = description.replace('\n', " ");
        }
        // What a key that refers to another file holds is said there.
        if object.contains_key("$ref") {
            object.retain(|key, _| ["$ref", "description"].contains(&key.as_str()));
        }
        let required: Vec<Value> =
            object.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        let properties = object.get_mut("properties").and_then(Value::as_object_mut);
        for (key, property) in properties.into_iter().flatten() {
            let is_null_too = property.as_object_mut().and_then(|object| object.remove(NULL_TOO)).is_some();
            if !is_null_too
                && !required.contains(&Value::from(key.as_str()))
                && let Some(types) = property.get_mut("type")
                && let Some(own) =
                    types.as_array().and_then(|all| all.iter().find(|one| *one != "null")).cloned()
            {
                *types = own;
            }
        }
        object.values_mut().for_each(tidy);
    }
    value.as_array_mut().into_iter().flatten().for_each(tidy);
}

#[test]
fn schemas_follow_from_the_types() {
    let all = [
        ("plan.json", schema::<PlanAnswer>("offpath plan DESIGN --format json")),
        ("check.json", schema::<CheckAnswer>("offpath check DESIGN --format json")),
        ("whatif.json", schema::<WhatIfAnswer>("offpath whatif DESIGN --format json")),
        (
            "compare.json",
            schema::<CompareAnswer>("offpath compare DESIGN --device DEVICE,DEVICE --format json"),
        ),
        ("path.json", schema::<PathAnswer>("offpath path DEVICE --path PATH --format json")),
        ("paths.json", schema::<PathsAnswer>("offpath path DEVICE --format json")),
        ("path-as.json", schema::<ToolAnswer>("offpath path DEVICE --as PROGRAM --format json")),
        ("sweep.json", schema::<SweepAnswer>("offpath sweep DEVICE --format json")),
        ("device-show.json", schema::<DeviceAnswer>("offpath device show DEVICE --format json")),
        ("calibrate.json", schema::<CalibrateAnswer>("offpath calibrate LOG... --format json")),
        ("import.json", schema::<ImportAnswer>("offpath import LOG... --format json")),
        ("import-rank.json", schema::<RankAnswer>("offpath import LOG... --rank MACHINE --format json")),
        ("collect.json", schema::<CollectAnswer>("offpath collect --format json")),
        ("measure.json", schema::<MeasureAnswer>("offpath measure BACKEND --format json")),
        ("measure-list.json", schema::<MeasureListAnswer>("offpath measure BACKEND --list --format json")),
        (
            "measure-suggest.json",
            schema::<MeasureSuggestAnswer>("offpath measure BACKEND --suggest DESIGN --format json"),
        ),
        ("diagnose.json", schema::<DiagnoseAnswer>("offpath diagnose LOG... --device DEVICE --format json")),
        ("export-ucx.json", schema::<UcxAnswer>("offpath export ucx DEVICE --format json")),
        ("watch.json", schema::<WatchAnswer>("offpath watch --expect PLAN READING... --format json")),
        ("new-device.json", schema::<NewDeviceAnswer>("offpath new device NAME --from FILE --format json")),
        ("device-list.json", schema::<ListAnswer>("offpath device list --format json")),
        ("reproduce.json", schema::<ReproduceAnswer>("offpath reproduce --format json")),
        (
            "reproduce-beside.json",
            schema::<BesideAnswer>("A model beside offpath, in offpath reproduce --format json"),
        ),
        ("explain.json", schema::<ExplainAnswer>("offpath explain ROW --format json")),
        ("torture.json", schema::<TortureAnswer>("offpath torture SYSTEM --format json")),
        ("fit.json", schema::<FitAnswer>("offpath fit --format json")),
    ];
    for (name, schema) in all {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas").join(name);
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            std::fs::write(&file, &schema).expect("the schema can be written");
        }
        let written = std::fs::read_to_string(&file).expect("the schema is there");
        assert_eq!(
            written, schema,
            "{name} is another: UPDATE_SCHEMAS=1 cargo test --release -p offpath-answers schemas"
        );
    }
}
