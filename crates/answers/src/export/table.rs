//! Saved answers and logs as a table with typed columns, for data frames. Files are read once for the columns and again for the
//! rows, since the rows of a log are more than memory holds.

use crate::import::{ImportedFigureAnswer, import_from};
use offpath_logs::LogItem;
use offpath_profile::open_file;
use offpath_terminal::failure::Failure;
use serde::de::IgnoredAny;
use serde::ser::{SerializeSeq, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
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
    /// Where its ending is another, or this build does not write the form.
    pub fn of(file: &Path) -> Result<TableForm, Failure> {
        match file.extension().and_then(|end| end.to_str()) {
            Some("csv") => Ok(TableForm::Csv),
            Some("json") => Ok(TableForm::Json),
            Some("parquet") if cfg!(feature = "parquet") => Ok(TableForm::Parquet),
            Some("parquet") => Err(Failure::input(
                "this build of offpath writes no Parquet",
                "build with `--features parquet`, or name a .csv file: data frames read both",
            )),
            _ => Err(Failure::input(
                format!("`{}` ends neither in .csv nor in .json nor in .parquet", file.display()),
                "give the file one of these endings",
            )),
        }
    }
}

/// A table: what its columns are, and where its rows are read.
#[derive(Debug)]
pub struct AnswerTable {
    sources: Vec<Source>,
    /// Names with their units and types: what says what a row is first, then by name.
    columns: Vec<(String, Kind)>,
    rows: u64,
}

/// Lists of an answer whose entries are rows, by the key of the list, with the word for an entry.
const LISTS: [(&str, &str); 11] = [
    ("alternatives", "alternative"),
    ("mixes", "mix"),
    ("rows", "row"),
    ("points", "point"),
    ("measurements", "figure"),
    ("counters", "counter"),
    ("changes", "change"),
    ("curve", "load"),
    ("clients", "clients"),
    ("works", "work"),
    ("others", "machine"),
];

/// Single entries of a plan that are rows too.
const SINGLES: [(&str, &str); 2] = [("greedy", "mix"), ("optimal", "mix")];

/// What holds lists of rows of its own: an object, or a list of such.
const NESTS: [&str; 3] = ["scenarios", "intervals", "sweep"];

/// Columns that say what a row is stand first.
const FIRST: [&str; 6] = ["file", "kind", "name", "scenario", "design", "device"];

/// A row: what is absent is missing or null.
type Row = Map<String, Value>;

/// What is done with a row.
type Each<'a> = &'a mut dyn FnMut(&Row) -> Result<(), Failure>;

/// A file that rows are read from.
#[derive(Debug)]
struct Source {
    file: PathBuf,
    /// What it says, where it can be read once only.
    text: Option<Vec<u8>>,
}

impl Source {
    fn open(file: &Path) -> Result<Source, Failure> {
        let is_input = file.as_os_str() == "-";
        let mut source = Source { file: file.to_path_buf(), text: None };
        let is_read_again = !is_input && file.metadata().is_ok_and(|known| known.is_file());
        if !is_read_again {
            let mut text = Vec::new();
            let read = match is_input {
                true => std::io::stdin().read_to_end(&mut text),
                false => open_file(file).and_then(|mut open| open.read_to_end(&mut text)),
            };
            read.map_err(|error| source.unreadable(&error))?;
            source.text = Some(text);
        }
        Ok(source)
    }

    fn unreadable(&self, error: &dyn std::fmt::Display) -> Failure {
        Failure::input(
            format!("`{}` cannot be read: {error}", self.file.display()),
            "check the name and that it may be read; `-` is a log on standard input",
        )
    }

    fn input(&self) -> Result<Box<dyn BufRead + '_>, Failure> {
        if let Some(text) = &self.text {
            return Ok(Box::new(&text[..]));
        }
        let open = File::open(&self.file).map_err(|error| self.unreadable(&error))?;
        Ok(Box::new(BufReader::with_capacity(1 << 16, open)))
    }

    /// Whether it is an answer of offpath, and no log.
    fn is_answer(&self) -> Result<bool, Failure> {
        #[derive(Deserialize)]
        struct Head {
            schema_version: Option<IgnoredAny>,
        }
        if self.file.as_os_str() == "-" {
            return Ok(false);
        }
        let head: Option<Head> = serde_json::from_reader(self.input()?).ok();
        Ok(head.is_some_and(|head| head.schema_version.is_some()))
    }

    /// Its rows, in their order. A log's are in memory one at a time, an answer as a whole.
    fn each_row(&self, each: Each) -> Result<(), Failure> {
        let name = self.file.display().to_string();
        if self.is_answer()? {
            let answer: Value =
                serde_json::from_reader(self.input()?).map_err(|error| self.unreadable(&error))?;
            let mut context = Row::new();
            context.insert("file".to_string(), name.into());
            return rows_of(&answer, &context, each);
        }
        let figures = import_from(&name, self.input()?, |name, item| {
            if let LogItem::Measurement(figure) = item {
                let own = serde_json::to_value(ImportedFigureAnswer::of(name, &figure));
                let own = own.map_err(|error| Failure::input(error.to_string(), "report it"))?;
                let mut row = Row::new();
                row.insert("kind".to_string(), "figure".into());
                flatten("", own, &mut row);
                each(&row)?;
            }
            Ok(())
        });
        figures.map(|_| ())
    }
}

fn rows_of(answer: &Value, context: &Row, each: Each) -> Result<(), Failure> {
    let Value::Object(answer) = answer else { return Ok(()) };
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
            Some(Value::Array(entries)) => {
                entries.iter().try_for_each(|entry| rows_of(entry, &context, each))?;
            }
            Some(entry) => rows_of(entry, &context, each)?,
            None => {}
        }
    }
    let mut add = |kind: &str, name: Option<&str>, entry: &Value| {
        if !entry.is_object() {
            return Ok(());
        }
        let mut row = context.clone();
        row.insert("kind".to_string(), kind.into());
        flatten("", entry.clone(), &mut row);
        if let Some(name) = name {
            row.insert("name".to_string(), name.into());
        }
        each(&row)
    };
    for (list, kind) in LISTS {
        for entry in answer.get(list).and_then(Value::as_array).into_iter().flatten() {
            add(kind, None, entry)?;
        }
    }
    for (key, kind) in SINGLES {
        if let Some(entry) = answer.get(key) {
            add(kind, Some(key), entry)?;
        }
    }
    Ok(())
}

/// Puts what an object holds down under names that are joined by `_`.
fn flatten(before: &str, value: Value, row: &mut Row) {
    let Value::Object(pairs) = value else {
        row.insert(before.to_string(), value);
        return;
    };
    for (key, value) in pairs {
        let name = if before.is_empty() { key } else { format!("{before}_{key}") };
        flatten(&name, value, row);
    }
}

/// What a column may be, by its values so far.
#[derive(Clone, Copy, Debug, PartialEq)]
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

impl Kind {
    /// A cell of its column; what is absent is null.
    fn cell(self, value: Option<&Value>) -> Value {
        let Some(value) = value.filter(|value| !value.is_null()) else { return Value::Null };
        match self {
            Kind::Whole => value.as_i64().into(),
            Kind::Number => value.as_f64().into(),
            Kind::Switch => value.as_bool().into(),
            Kind::Text | Kind::Unknown => {
                value.as_str().map_or_else(|| value.to_string(), str::to_string).into()
            }
        }
    }

    /// The same as text, empty where it is absent.
    fn text(self, value: Option<&Value>) -> String {
        match self.cell(value) {
            Value::Null => String::new(),
            Value::String(text) => text,
            Value::Number(number) if !number.is_i64() => {
                number.as_f64().map_or_else(String::new, |number| number.to_string())
            }
            other => other.to_string(),
        }
    }
}

impl AnswerTable {
    /// Reads saved answers of offpath (`--format json`) and logs of other tools for the columns of one table. `file` and `kind`
    /// say where a row is from and what it is.
    ///
    /// # Errors
    /// Where a file cannot be read or has no row.
    pub fn of(files: &[PathBuf]) -> Result<AnswerTable, Failure> {
        let mut kinds: BTreeMap<String, Kind> = BTreeMap::new();
        let (mut sources, mut rows) = (Vec::new(), 0);
        for file in files {
            let before = rows;
            let source = Source::open(file)?;
            source.each_row(&mut |row| {
                rows += 1;
                for (name, value) in row {
                    match kinds.get_mut(name) {
                        Some(kind) => *kind = kind.with(value),
                        None => drop(kinds.insert(name.clone(), Kind::Unknown.with(value))),
                    }
                }
                Ok(())
            })?;
            if rows == before {
                return Err(Failure::input(
                    format!(
                        "`{}` has no row: it is neither an answer of offpath with rows nor a log with figures",
                        file.display()
                    ),
                    "name what `plan`, `sweep`, `measure`, `import`, `diagnose`, `calibrate` or `watch` print with `--format json`, \
                     or a log that `offpath import` reads",
                ));
            }
            sources.push(source);
        }
        let mut columns: Vec<(String, Kind)> = kinds.into_iter().collect();
        columns.sort_by_key(|(name, _)| FIRST.iter().position(|first| first == name).unwrap_or(FIRST.len()));
        Ok(AnswerTable { sources, columns, rows })
    }

    /// How many columns it has.
    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    /// How many rows it has.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Writes it.
    ///
    /// # Errors
    /// Where it cannot be written, or a file is not what it was for the columns.
    pub fn write(&self, form: TableForm, out: &mut dyn Write) -> Result<(), Failure> {
        match form {
            TableForm::Csv => self.csv(out),
            TableForm::Json => self.json(out),
            TableForm::Parquet => self.parquet(out),
        }
    }

    /// The rows again.
    fn each_row(&self, mut each: impl FnMut(&Row) -> Result<(), Failure>) -> Result<(), Failure> {
        let mut left = self.rows;
        let changed = || {
            Failure::input(
                "a file has other rows than when its columns were read",
                "try again when nobody writes to it",
            )
        };
        for source in &self.sources {
            source.each_row(&mut |row| {
                left = left.checked_sub(1).ok_or_else(changed)?;
                each(row)
            })?;
        }
        if left > 0 { Err(changed()) } else { Ok(()) }
    }

    fn csv(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let mut out = csv::Writer::from_writer(out);
        out.write_record(self.columns.iter().map(|(name, _)| name)).map_err(|error| unwritten(&error))?;
        self.each_row(|row| {
            let cells = self.columns.iter().map(|(name, kind)| kind.text(row.get(name)));
            out.write_record(cells).map_err(|error| unwritten(&error))
        })?;
        out.flush().map_err(|error| unwritten(&error))
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let mut by_name = self.columns.clone();
        by_name.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut json = serde_json::Serializer::pretty(&mut *out);
        let mut list = json.serialize_seq(None).map_err(|error| unwritten(&error))?;
        self.each_row(|row| {
            list.serialize_element(&JsonRow { columns: &by_name, row }).map_err(|error| unwritten(&error))
        })?;
        list.end().map_err(|error| unwritten(&error))?;
        out.write_all(b"\n").map_err(|error| unwritten(&error))
    }

    #[cfg(not(feature = "parquet"))]
    fn parquet(&self, _: &mut dyn Write) -> Result<(), Failure> {
        // `TableForm::of` refuses it.
        Err(Failure::input("this build of offpath writes no Parquet", "build with `--features parquet`"))
    }

    /// A column after the other, so that all cells are in memory.
    #[cfg(feature = "parquet")]
    fn parquet(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let mut cells: Vec<Vec<Value>> = self.columns.iter().map(|_| Vec::new()).collect();
        self.each_row(|row| {
            for ((name, kind), cells) in self.columns.iter().zip(&mut cells) {
                cells.push(kind.cell(row.get(name)));
            }
            Ok(())
        })?;
        let bytes = self.parquet_bytes(&cells).map_err(|error| {
            Failure::input(format!("the table is no Parquet: {error}"), "name a .csv file")
        })?;
        out.write_all(&bytes).map_err(|error| unwritten(&error))
    }

    #[cfg(feature = "parquet")]
    fn parquet_bytes(&self, cells: &[Vec<Value>]) -> parquet::errors::Result<Vec<u8>> {
        use parquet::basic::{ConvertedType, Repetition, Type as Physical};
        use parquet::data_type::{BoolType, ByteArrayType, DoubleType, Int64Type};
        use parquet::file::properties::WriterProperties;
        use parquet::file::writer::SerializedFileWriter;
        use parquet::schema::types::Type;
        use std::sync::Arc;

        let field = |(name, kind): &(String, Kind)| {
            let (physical, converted) = match kind {
                Kind::Whole => (Physical::INT64, ConvertedType::NONE),
                Kind::Number => (Physical::DOUBLE, ConvertedType::NONE),
                Kind::Switch => (Physical::BOOLEAN, ConvertedType::NONE),
                Kind::Text | Kind::Unknown => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
            };
            let field = Type::primitive_type_builder(name, physical);
            Ok(Arc::new(field.with_repetition(Repetition::OPTIONAL).with_converted_type(converted).build()?))
        };
        let fields = self.columns.iter().map(field).collect::<parquet::errors::Result<Vec<_>>>()?;
        let schema = Arc::new(Type::group_type_builder("offpath").with_fields(fields).build()?);
        let mut bytes = Vec::new();
        let properties = Arc::new(WriterProperties::builder().build());
        let mut file = SerializedFileWriter::new(&mut bytes, schema, properties)?;
        let mut group = file.next_row_group()?;
        for ((_, kind), cells) in self.columns.iter().zip(cells) {
            let mut out = group.next_column()?.expect("the schema has a column for each");
            // 1 where a value is there; absent ones are left out.
            let levels: Vec<i16> = cells.iter().map(|cell| (!cell.is_null()).into()).collect();
            let levels = Some(&levels[..]);
            match kind {
                Kind::Whole => {
                    let values: Vec<i64> = cells.iter().filter_map(Value::as_i64).collect();
                    out.typed::<Int64Type>().write_batch(&values, levels, None)?;
                }
                Kind::Number => {
                    let values: Vec<f64> = cells.iter().filter_map(Value::as_f64).collect();
                    out.typed::<DoubleType>().write_batch(&values, levels, None)?;
                }
                Kind::Switch => {
                    let values: Vec<bool> = cells.iter().filter_map(Value::as_bool).collect();
                    out.typed::<BoolType>().write_batch(&values, levels, None)?;
                }
                Kind::Text | Kind::Unknown => {
                    let values: Vec<_> = cells.iter().filter_map(Value::as_str).map(Into::into).collect();
                    out.typed::<ByteArrayType>().write_batch(&values, levels, None)?;
                }
            }
            out.close()?;
        }
        group.close()?;
        file.close()?;
        Ok(bytes)
    }
}

/// A row as an object with every column.
struct JsonRow<'a> {
    columns: &'a [(String, Kind)],
    row: &'a Row,
}

impl Serialize for JsonRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.columns.iter().map(|(name, kind)| (name, kind.cell(self.row.get(name)))))
    }
}

fn unwritten(error: &dyn std::fmt::Display) -> Failure {
    Failure::unwritten(format!("the table cannot be written: {error}"), "make room, or write to another disk")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of the rows, which a saved answer has.
    fn table(folder: &Path, rows: &[Value]) -> AnswerTable {
        let file = folder.join("a.json");
        let answer = serde_json::json!({ "schema_version": 1, "points": rows });
        std::fs::write(&file, answer.to_string()).expect("it is written");
        let mut table = AnswerTable::of(&[file]).unwrap_or_else(|why| panic!("{why:?}"));
        // Where it is and what its rows are.
        table.columns.retain(|(name, _)| name != "file" && name != "kind");
        table
    }

    fn mixed(folder: &Path) -> AnswerTable {
        table(
            folder,
            &[
                serde_json::json!({ "a": 1, "b": true, "name": "x, \"y\"", "c": 1, "d": null }),
                serde_json::json!({ "a": 2.5, "b": null, "name": "z", "c": "two" }),
                serde_json::json!({ "a": null, "e": [1, 2] }),
            ],
        )
    }

    fn written(table: &AnswerTable, form: TableForm) -> Vec<u8> {
        let mut out = Vec::new();
        table.write(form, &mut out).unwrap_or_else(|why| panic!("{why:?}"));
        out
    }

    #[test]
    fn a_column_has_one_type_and_absent_is_absent() {
        let folder = tempfile::tempdir().expect("a folder");
        let table = mixed(folder.path());
        let kinds: Vec<(&str, Kind)> = table.columns.iter().map(|(name, kind)| (&**name, *kind)).collect();
        let expected = [
            ("name", Kind::Text),
            ("a", Kind::Number),
            ("b", Kind::Switch),
            ("c", Kind::Text),
            ("d", Kind::Unknown),
            ("e", Kind::Text),
        ];
        assert_eq!(kinds, expected);
        let csv = String::from_utf8(written(&table, TableForm::Csv)).expect("text");
        assert_eq!(csv, "name,a,b,c,d,e\n\"x, \"\"y\"\"\",1,true,1,,\nz,2.5,,two,,\n,,,,,\"[1,2]\"\n");
        let rows: Value = serde_json::from_slice(&written(&table, TableForm::Json)).expect("JSON");
        let expected = serde_json::json!([
            { "a": 1.0, "b": true, "c": "1", "d": null, "e": null, "name": "x, \"y\"" },
            { "a": 2.5, "b": null, "c": "two", "d": null, "e": null, "name": "z" },
            { "a": null, "b": null, "c": null, "d": null, "e": "[1,2]", "name": null },
        ]);
        assert_eq!(rows, expected);
    }

    /// Columns are those of the first look: what grows meanwhile is refused.
    #[test]
    fn a_file_that_changes_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let table = mixed(folder.path());
        for count in [2, 4] {
            let points = vec![serde_json::json!({ "a": 1 }); count];
            let answer = serde_json::json!({ "schema_version": 1, "points": points });
            std::fs::write(folder.path().join("a.json"), answer.to_string()).expect("it is written");
            let refused = table.write(TableForm::Csv, &mut Vec::new()).expect_err("it has changed");
            assert!(format!("{refused:?}").contains("other rows"), "{refused:?}");
        }
    }

    /// What is written is read again, value by value.
    #[cfg(feature = "parquet")]
    #[test]
    fn parquet_is_read_again() {
        use parquet::file::reader::{FileReader, SerializedFileReader};
        use parquet::record::Field;
        let folder = tempfile::tempdir().expect("a folder");
        let bytes = written(&mixed(folder.path()), TableForm::Parquet);
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
