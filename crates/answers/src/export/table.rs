//! Saved answers and logs as a table with typed columns, for data frames.

use crate::import::{ImportRequest, ImportedFigureAnswer, import_each};
use offpath_logs::LogItem;
use offpath_terminal::failure::Failure;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What a table is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableForm {
    /// Comma-separated values with a header; what is absent is an empty cell.
    Csv,
    /// A list of objects; what is absent is null.
    Json,
    /// Apache Parquet.
    Parquet,
}

impl TableForm {
    /// The form that a file's name asks for.
    ///
    /// # Errors
    /// Where its ending is another.
    pub fn of(file: &Path) -> Result<TableForm, Failure> {
        match file.extension().and_then(|end| end.to_str()) {
            Some("csv") => Ok(TableForm::Csv),
            Some("json") => Ok(TableForm::Json),
            Some("parquet") => Ok(TableForm::Parquet),
            _ => Err(Failure::input(
                format!("`{}` ends neither in .csv nor in .json nor in .parquet", file.display()),
                "give the file one of these endings",
            )),
        }
    }
}

/// The values of a column, each of one type; what is absent is none.
#[derive(Clone, Debug, PartialEq)]
pub enum TableValues {
    /// Whole numbers.
    Whole(Vec<Option<i64>>),
    /// Numbers.
    Number(Vec<Option<f64>>),
    /// Yes or no.
    Switch(Vec<Option<bool>>),
    /// Text; lists and whatever differs from row to row stand as JSON.
    Text(Vec<Option<String>>),
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct TableColumn {
    /// Its name, with the unit.
    pub name: String,
    /// Its values, one for each row.
    pub values: TableValues,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AnswerTable {
    /// Its columns: what says what a row is first, then by name.
    pub columns: Vec<TableColumn>,
    /// How many rows it has.
    pub rows: usize,
}

/// Lists of an answer whose entries are rows, by the key of the list, with the word for an entry.
const LISTS: [(&str, &str); 9] = [
    ("alternatives", "alternative"),
    ("mixes", "mix"),
    ("rows", "row"),
    ("points", "point"),
    ("measurements", "figure"),
    ("counters", "counter"),
    ("changes", "change"),
    ("curve", "load"),
    ("clients", "clients"),
];

/// Single entries of a plan that are rows too.
const SINGLES: [(&str, &str); 2] = [("greedy", "mix"), ("optimal", "mix")];

/// What holds lists of rows of its own: an object, or a list of such.
const NESTS: [&str; 3] = ["scenarios", "intervals", "sweep"];

/// Columns that say what a row is stand first.
const FIRST: [&str; 6] = ["file", "kind", "name", "scenario", "design", "device"];

/// Reads saved answers of offpath (`--format json`) and logs of other tools as one table. `file` and `kind` say where a row is
/// from and what it is.
///
/// # Errors
/// Where a file cannot be read or has no row.
pub fn table_of(files: &[PathBuf]) -> Result<AnswerTable, Failure> {
    let mut rows = Vec::new();
    for file in files {
        let before = rows.len();
        match saved_answer(file)? {
            Some(answer) => {
                let mut context = Map::new();
                context.insert("file".to_string(), file.display().to_string().into());
                rows_of(&answer, &context, &mut rows);
            }
            None => {
                import_each(&ImportRequest { logs: vec![file.clone()] }, |name, item| {
                    if let LogItem::Measurement(figure) = item {
                        let own = serde_json::to_value(ImportedFigureAnswer::of(name, &figure));
                        let own = own.map_err(|error| Failure::input(error.to_string(), "report it"))?;
                        let mut row = Map::new();
                        row.insert("kind".to_string(), "figure".into());
                        flatten("", &own, &mut row);
                        rows.push(row);
                    }
                    Ok(())
                })?;
            }
        }
        if rows.len() == before {
            return Err(Failure::input(
                format!(
                    "`{}` has no row: it is neither an answer of offpath with rows nor a log with figures",
                    file.display()
                ),
                "name what `plan`, `sweep`, `measure`, `import`, `diagnose`, `calibrate` or `watch` print with `--format json`, \
                 or a log that `offpath import` reads",
            ));
        }
    }
    Ok(AnswerTable::of(&rows))
}

/// The answer of offpath that a file holds; nothing where it holds something else.
fn saved_answer(file: &Path) -> Result<Option<Value>, Failure> {
    if file.as_os_str() == "-" {
        return Ok(None);
    }
    let bytes = std::fs::read(file).map_err(|error| {
        Failure::input(
            format!("`{}` cannot be read: {error}", file.display()),
            "check the name and that it may be read; `-` is a log on standard input",
        )
    })?;
    let answer: Option<Value> = serde_json::from_slice(&bytes).ok();
    Ok(answer.filter(|answer| answer.get("schema_version").is_some()))
}

fn rows_of(answer: &Value, context: &Map<String, Value>, rows: &mut Vec<Map<String, Value>>) {
    let Value::Object(answer) = answer else { return };
    let mut context = context.clone();
    // What is said once holds for each row.
    for (key, value) in answer {
        let is_said_once = !value.is_object() && !value.is_array() && key != "schema_version";
        if is_said_once && !context.contains_key(key) {
            context.insert(key.clone(), value.clone());
        }
    }
    for nest in NESTS {
        match answer.get(nest) {
            Some(Value::Array(entries)) => entries.iter().for_each(|entry| rows_of(entry, &context, rows)),
            Some(entry) => rows_of(entry, &context, rows),
            None => {}
        }
    }
    let mut add = |kind: &str, name: Option<&str>, entry: &Value| {
        if !entry.is_object() {
            return;
        }
        let mut row = context.clone();
        row.insert("kind".to_string(), kind.into());
        flatten("", entry, &mut row);
        if let Some(name) = name {
            row.insert("name".to_string(), name.into());
        }
        rows.push(row);
    };
    for (list, kind) in LISTS {
        for entry in answer.get(list).and_then(Value::as_array).into_iter().flatten() {
            add(kind, None, entry);
        }
    }
    for (key, kind) in SINGLES {
        if let Some(entry) = answer.get(key) {
            add(kind, Some(key), entry);
        }
    }
}

/// Puts what an object holds down under names that are joined by `_`.
fn flatten(before: &str, value: &Value, row: &mut Map<String, Value>) {
    let Value::Object(pairs) = value else {
        row.insert(before.to_string(), value.clone());
        return;
    };
    for (key, value) in pairs {
        let name = if before.is_empty() { key.clone() } else { format!("{before}_{key}") };
        flatten(&name, value, row);
    }
}

/// What a column may be, by its values so far.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Unknown,
    Whole,
    Number,
    Switch,
    Text,
}

impl Kind {
    fn with(self, value: &Value) -> Kind {
        let own = match value {
            Value::Null => return self,
            Value::Bool(_) => Kind::Switch,
            Value::Number(number) if number.is_i64() => Kind::Whole,
            Value::Number(_) => Kind::Number,
            _ => Kind::Text,
        };
        match (self, own) {
            (Kind::Unknown, own) => own,
            (one, other) if one == other => one,
            (Kind::Whole, Kind::Number) | (Kind::Number, Kind::Whole) => Kind::Number,
            _ => Kind::Text,
        }
    }
}

impl AnswerTable {
    fn of(rows: &[Map<String, Value>]) -> AnswerTable {
        let mut columns: BTreeMap<(usize, String), Kind> = BTreeMap::new();
        for row in rows {
            for (name, value) in row {
                let rank = FIRST.iter().position(|first| first == name).unwrap_or(FIRST.len());
                let kind = columns.entry((rank, name.clone())).or_insert(Kind::Unknown);
                *kind = kind.with(value);
            }
        }
        let columns = columns.into_iter().map(|((_, name), kind)| {
            let cells = rows.iter().map(|row| row.get(&name).filter(|value| !value.is_null()));
            let values = match kind {
                Kind::Whole => TableValues::Whole(cells.map(|cell| cell.and_then(Value::as_i64)).collect()),
                Kind::Number => TableValues::Number(cells.map(|cell| cell.and_then(Value::as_f64)).collect()),
                Kind::Switch => {
                    TableValues::Switch(cells.map(|cell| cell.and_then(Value::as_bool)).collect())
                }
                Kind::Text | Kind::Unknown => TableValues::Text(
                    cells
                        .map(|cell| {
                            cell.map(|cell| cell.as_str().map_or_else(|| cell.to_string(), str::to_string))
                        })
                        .collect(),
                ),
            };
            TableColumn { name, values }
        });
        AnswerTable { columns: columns.collect(), rows: rows.len() }
    }

    /// The table as the bytes of a file.
    ///
    /// # Errors
    /// Where this build does not write the form.
    pub fn written(&self, form: TableForm) -> Result<Vec<u8>, Failure> {
        match form {
            TableForm::Csv => Ok(self.csv()),
            TableForm::Json => Ok(self.json()),
            TableForm::Parquet => self.parquet(),
        }
    }

    fn csv(&self) -> Vec<u8> {
        let mut out = csv::Writer::from_writer(Vec::new());
        out.write_record(self.columns.iter().map(|column| &column.name)).expect("memory takes a row");
        for row in 0..self.rows {
            let cells = self.columns.iter().map(|column| column.values.cell(row));
            out.write_record(cells).expect("memory takes a row");
        }
        out.into_inner().expect("memory takes a row")
    }

    fn json(&self) -> Vec<u8> {
        let row = |row: usize| {
            let pairs = self.columns.iter().map(|column| (column.name.as_str(), column.values.json(row)));
            pairs.collect::<BTreeMap<&str, Value>>()
        };
        let rows: Vec<BTreeMap<&str, Value>> = (0..self.rows).map(row).collect();
        let mut bytes = serde_json::to_vec_pretty(&rows).expect("a table is JSON");
        bytes.push(b'\n');
        bytes
    }

    #[cfg(not(feature = "parquet"))]
    fn parquet(&self) -> Result<Vec<u8>, Failure> {
        Err(Failure::input(
            "this build of offpath writes no Parquet",
            "build with `--features parquet`, or name a .csv file: data frames read both",
        ))
    }

    #[cfg(feature = "parquet")]
    fn parquet(&self) -> Result<Vec<u8>, Failure> {
        self.parquet_bytes()
            .map_err(|error| Failure::input(format!("the table is no Parquet: {error}"), "name a .csv file"))
    }

    #[cfg(feature = "parquet")]
    fn parquet_bytes(&self) -> parquet::errors::Result<Vec<u8>> {
        use parquet::basic::{ConvertedType, Repetition, Type as Physical};
        use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
        use parquet::file::properties::WriterProperties;
        use parquet::file::writer::SerializedFileWriter;
        use parquet::schema::types::Type;
        use std::sync::Arc;

        let field = |column: &TableColumn| {
            let (physical, converted) = match column.values {
                TableValues::Whole(_) => (Physical::INT64, ConvertedType::NONE),
                TableValues::Number(_) => (Physical::DOUBLE, ConvertedType::NONE),
                TableValues::Switch(_) => (Physical::BOOLEAN, ConvertedType::NONE),
                TableValues::Text(_) => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
            };
            let field = Type::primitive_type_builder(&column.name, physical);
            Ok(Arc::new(field.with_repetition(Repetition::OPTIONAL).with_converted_type(converted).build()?))
        };
        let fields = self.columns.iter().map(field).collect::<parquet::errors::Result<Vec<_>>>()?;
        let schema = Arc::new(Type::group_type_builder("offpath").with_fields(fields).build()?);
        let mut bytes = Vec::new();
        let properties = Arc::new(WriterProperties::builder().build());
        let mut file = SerializedFileWriter::new(&mut bytes, schema, properties)?;
        let mut group = file.next_row_group()?;
        for column in &self.columns {
            let mut out = group.next_column()?.expect("the schema has a column for each");
            // 1 where a value is there; absent ones are left out.
            fn parts<T: Clone>(all: &[Option<T>]) -> (Vec<T>, Vec<i16>) {
                (
                    all.iter().flatten().cloned().collect(),
                    all.iter().map(|one| one.is_some().into()).collect(),
                )
            }
            match &column.values {
                TableValues::Whole(all) => {
                    let (values, levels) = parts(all);
                    out.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
                }
                TableValues::Number(all) => {
                    let (values, levels) = parts(all);
                    out.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?;
                }
                TableValues::Switch(all) => {
                    let (values, levels) = parts(all);
                    out.typed::<BoolType>().write_batch(&values, Some(&levels), None)?;
                }
                TableValues::Text(all) => {
                    let (values, levels) = parts(all);
                    let values: Vec<ByteArray> = values.iter().map(|text| text.as_str().into()).collect();
                    out.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
                }
            }
            out.close()?;
        }
        group.close()?;
        file.close()?;
        Ok(bytes)
    }
}

impl TableValues {
    fn cell(&self, row: usize) -> String {
        match self {
            TableValues::Whole(all) => all[row].map_or_else(String::new, |value| value.to_string()),
            TableValues::Number(all) => all[row].map_or_else(String::new, |value| value.to_string()),
            TableValues::Switch(all) => all[row].map_or_else(String::new, |value| value.to_string()),
            TableValues::Text(all) => all[row].clone().unwrap_or_default(),
        }
    }

    fn json(&self, row: usize) -> Value {
        match self {
            TableValues::Whole(all) => all[row].into(),
            TableValues::Number(all) => all[row].into(),
            TableValues::Switch(all) => all[row].into(),
            TableValues::Text(all) => all[row].clone().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[Value]) -> AnswerTable {
        let rows: Vec<Map<String, Value>> =
            rows.iter().map(|row| row.as_object().expect("an object").clone()).collect();
        AnswerTable::of(&rows)
    }

    fn mixed() -> AnswerTable {
        table(&[
            serde_json::json!({ "a": 1, "b": true, "name": "x, \"y\"", "c": 1, "d": null }),
            serde_json::json!({ "a": 2.5, "b": null, "name": "z", "c": "two" }),
            serde_json::json!({ "a": null, "e": [1, 2] }),
        ])
    }

    #[test]
    fn a_column_has_one_type_and_absent_is_absent() {
        let table = mixed();
        let column =
            |name: &str| &table.columns.iter().find(|one| one.name == name).expect("it is there").values;
        assert_eq!(table.columns[0].name, "name");
        assert_eq!(*column("a"), TableValues::Number(vec![Some(1.0), Some(2.5), None]));
        assert_eq!(*column("b"), TableValues::Switch(vec![Some(true), None, None]));
        let text =
            |all: [Option<&str>; 3]| TableValues::Text(all.map(|one| one.map(str::to_string)).to_vec());
        assert_eq!(*column("c"), text([Some("1"), Some("two"), None]));
        assert_eq!(*column("d"), text([None, None, None]));
        assert_eq!(*column("e"), text([None, None, Some("[1,2]")]));
        let csv = String::from_utf8(table.csv()).expect("text");
        assert_eq!(csv, "name,a,b,c,d,e\n\"x, \"\"y\"\"\",1,true,1,,\nz,2.5,,two,,\n,,,,,\"[1,2]\"\n");
        let rows: Vec<Value> = serde_json::from_slice(&table.json()).expect("JSON");
        assert_eq!((&rows[1]["a"], &rows[1]["b"]), (&2.5.into(), &Value::Null));
    }

    /// What is written is read again, value by value.
    #[cfg(feature = "parquet")]
    #[test]
    fn parquet_is_read_again() {
        use parquet::file::reader::{FileReader, SerializedFileReader};
        use parquet::record::Field;
        let bytes = mixed().written(TableForm::Parquet).expect("it is written");
        let file = tempfile::tempfile().expect("a file");
        std::io::Write::write_all(&mut &file, &bytes).expect("it is written");
        let reader = SerializedFileReader::new(file).expect("it is Parquet");
        let rows: Vec<Vec<(String, Field)>> = reader
            .get_row_iter(None)
            .expect("it has rows")
            .map(|row| row.expect("a row").into_columns())
            .collect();
        let field = |row: usize, name: &str| {
            rows[row].iter().find(|(own, _)| own == name).map(|(_, field)| field.clone()).expect("a column")
        };
        assert_eq!(rows.len(), 3);
        assert_eq!(
            (field(0, "a"), field(1, "a"), field(2, "a")),
            (Field::Double(1.0), Field::Double(2.5), Field::Null)
        );
        assert_eq!((field(0, "b"), field(1, "b")), (Field::Bool(true), Field::Null));
        assert_eq!(field(0, "name"), Field::Str("x, \"y\"".into()));
        assert_eq!(field(2, "e"), Field::Str("[1,2]".into()));
    }
}
