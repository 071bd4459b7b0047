//! Changes to a design's text that keep its comments and layout.

use crate::estimate::Written;
use offpath_route::{Path, VERBS};
use std::collections::BTreeMap;
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike, Value, value};

/// Where a step stands: its alternative, the operation, and how many steps come before it, those
/// that hold others counted before what they hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepRef {
    /// The alternative.
    pub alternative: String,
    /// What the file calls it: one of several that it makes by a choice is written once.
    pub family: String,
    /// The operation's key, as in `request` or `read`.
    pub operation: String,
    /// The position, depth first.
    pub index: usize,
}

/// A design's text, to be changed.
///
/// While it is changed each step carries the place that it had, so that what moves, and what is copied, is known again.
#[derive(Clone, Debug)]
pub struct Edit(DocumentMut);

/// That a change is in the text, or why it cannot be written into it.
pub type Edited = Result<(), String>;

/// Where each step of a changed text, by its place, stood before; none where it is new. Places are those of estimates, as in
/// `alternative.a.request.3.hit.1`.
pub type StepOrigins = BTreeMap<String, Option<String>>;

/// A changed text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedText {
    /// The text.
    pub text: String,
    /// Where its steps stood before.
    pub origins: StepOrigins,
}

/// The key under which a step carries its place.
const MARK: &str = "offpath step";

/// Keys of an alternative whose lists are steps.
const OPERATIONS: [&str; 7] =
    ["request", "read", "update", "insert", "scan", "readmodifywrite", "background"];

/// Keys whose lists hold steps, in the order in which a design resolves them.
const LISTS: [&str; 7] = ["steps", "parallel", "hit", "miss", "then", "otherwise", "background"];

/// A step as the file writes it.
enum StepMut<'d> {
    Inline(&'d mut InlineTable),
    Table(&'d mut Table),
}

impl StepMut<'_> {
    fn keys(&mut self) -> &mut dyn TableLike {
        match self {
            StepMut::Inline(table) => *table,
            StepMut::Table(table) => *table,
        }
    }

    fn replace(&mut self, by: InlineTable) {
        match self {
            StepMut::Inline(table) => {
                let decor = table.decor().clone();
                **table = by;
                *table.decor_mut() = decor;
            }
            StepMut::Table(table) => {
                table.clear();
                by.into_iter().for_each(|(key, one)| {
                    table.insert(&key, Item::Value(one));
                });
            }
        }
    }

    fn tidy(&mut self) {
        if let StepMut::Inline(table) = self {
            table.fmt();
        }
    }
}

/// What a walk does with each step: the position, the place and the step; it ends the walk by `true`.
type Visitor<'v> = dyn FnMut(usize, &str, StepMut<'_>) -> bool + 'v;

fn walk(item: &mut Item, place: &str, count: &mut usize, visit: &mut Visitor<'_>) -> bool {
    match item {
        Item::ArrayOfTables(tables) => tables.iter_mut().enumerate().any(|(position, table)| {
            let (index, place) = (next(count), format!("{place}.{}", position + 1));
            visit(index, &place, StepMut::Table(table)) || inside(table, &place, count, visit)
        }),
        Item::Value(Value::Array(list)) => walk_list(list, place, count, visit),
        _ => false,
    }
}

fn walk_list(list: &mut Array, place: &str, count: &mut usize, visit: &mut Visitor<'_>) -> bool {
    list.iter_mut().enumerate().any(|(position, one)| {
        let place = format!("{place}.{}", position + 1);
        match one {
            Value::InlineTable(table) => {
                let index = next(count);
                visit(index, &place, StepMut::Inline(table)) || inside(table, &place, count, visit)
            }
            Value::Array(list) => walk_list(list, &place, count, visit),
            _ => false,
        }
    })
}

fn inside(table: &mut dyn TableLike, place: &str, count: &mut usize, visit: &mut Visitor<'_>) -> bool {
    LISTS.iter().any(|key| {
        let place = format!("{place}.{key}");
        table.get_mut(key).is_some_and(|item| walk(item, &place, count, visit))
    })
}

/// Every step of every alternative.
fn walk_all(document: &mut DocumentMut, mut visit: impl FnMut(&str, StepMut<'_>)) {
    let tables = document.get_mut("alternative").and_then(Item::as_array_of_tables_mut);
    for table in tables.into_iter().flat_map(ArrayOfTables::iter_mut) {
        let name = text_of(table, "name").unwrap_or_default().to_string();
        for key in OPERATIONS {
            if let Some(item) = table.get_mut(key) {
                walk(item, &format!("alternative.{name}.{key}"), &mut 0, &mut |_, place, step| {
                    visit(place, step);
                    false
                });
            }
        }
    }
}

fn next(count: &mut usize) -> usize {
    *count += 1;
    *count - 1
}

fn text_of<'t>(table: &'t dyn TableLike, key: &str) -> Option<&'t str> {
    table.get(key).and_then(Item::as_str)
}

/// Refuses to let keys of a step say something else where a choice decides one of them.
///
/// # Errors
/// Where one does.
pub fn by_choice(step: &dyn TableLike, keys: &[&str]) -> Edited {
    let found =
        keys.iter().find_map(|key| Some((key, text_of(step, key)?)).filter(|(_, text)| text.contains('{')));
    match found {
        Some((key, text)) => Err(format!(
            "`{key} = \"{text}\"` goes by a choice, and the change is for one of its values; write the alternative out \
             without `choose`"
        )),
        None => Ok(()),
    }
}

impl Edit {
    /// The text of a design that was read without errors; `None` where it is not TOML.
    pub fn new(text: &str) -> Option<Edit> {
        let mut document: DocumentMut = text.parse().ok()?;
        walk_all(&mut document, |place, mut step| {
            step.keys().insert(MARK, value(place));
        });
        Some(Edit(document))
    }

    fn alternatives(&mut self) -> Result<&mut ArrayOfTables, String> {
        let tables = self.0.get_mut("alternative").and_then(Item::as_array_of_tables_mut);
        tables.ok_or_else(|| {
            "its alternatives are no tables of their own; write each under `[[alternative]]`".to_string()
        })
    }

    /// The alternative whose steps the one takes that the file calls `name`.
    fn with_steps(&mut self, name: &str) -> Result<&mut Table, String> {
        let tables = self.alternatives()?;
        let own = tables.iter().find(|one| text_of(*one, "name") == Some(name));
        let lender = own.and_then(|own| text_of(own, "like")).unwrap_or(name).to_string();
        let found = tables.iter_mut().find(|one| text_of(*one, "name") == Some(&lender));
        found.ok_or_else(|| format!("it has no `[[alternative]]` named `{lender}`"))
    }

    /// The steps of an operation.
    fn list(&mut self, at: &StepRef) -> Result<&mut Item, String> {
        let item = self.with_steps(&at.family)?.get_mut(&at.operation);
        item.ok_or_else(|| format!("`{}` has no list `{}`", at.family, at.operation))
    }

    fn step(&mut self, at: &StepRef, change: impl FnOnce(StepMut<'_>) -> Edited) -> Edited {
        let item = self.list(at)?;
        let (mut change, mut done) = (Some(change), None);
        walk(item, "", &mut 0, &mut |index, _, step| {
            if index == at.index {
                done = change.take().map(|change| change(step));
            }
            index == at.index
        });
        done.unwrap_or_else(|| {
            Err(format!(
                "step {} of `{}` stands in another list of `{}`",
                at.index + 1,
                at.operation,
                at.family
            ))
        })
    }

    /// What the file writes for a key of a step.
    pub fn raw(&self, at: &StepRef, key: &str) -> Option<String> {
        let mut found = None;
        let read = self.clone().step(at, |mut step| {
            found = text_of(step.keys(), key).map(str::to_string);
            Ok(())
        });
        read.ok().and(found)
    }

    /// A step as the file writes it, to be changed and put elsewhere.
    ///
    /// # Errors
    /// Where the text has no such step.
    pub fn copy(&self, at: &StepRef) -> Result<InlineTable, String> {
        let mut copy = InlineTable::new();
        self.clone().step(at, |mut step| {
            for (key, item) in step.keys().iter() {
                if let Some(value) = item.as_value() {
                    copy.insert(key, value.clone());
                }
            }
            Ok(())
        })?;
        copy.fmt();
        Ok(copy)
    }

    /// Posts a step in batches, or alone where `batch` is 1.
    ///
    /// # Errors
    /// Where that cannot be written.
    pub fn batch(&mut self, at: &StepRef, batch: u32) -> Edited {
        self.step(at, |mut step| {
            by_choice(step.keys(), &["batch"])?;
            if batch > 1 {
                step.keys().insert("batch", value(i64::from(batch)));
            } else {
                step.keys().remove("batch");
            }
            step.tidy();
            Ok(())
        })
    }

    /// Splits a step's payload into `pieces` equal ones, one after another. `piece` is their size;
    /// a payload that the file writes by a parameter's name keeps it.
    ///
    /// # Errors
    /// Where that cannot be written.
    pub fn segment(&mut self, at: &StepRef, pieces: u64, piece: &str) -> Edited {
        self.step(at, |mut step| {
            by_choice(step.keys(), &["bytes"])?;
            let mut inner = InlineTable::new();
            for (key, item) in step.keys().iter() {
                let mut one =
                    item.as_value().ok_or_else(|| format!("its `{key}` is a table of its own"))?.clone();
                if key == "bytes" {
                    let given = one.as_str().filter(|text| !Written::is_interval(text));
                    let given =
                        given.ok_or("no product divides an interval: name its size under `[parameters]`")?;
                    // A share of the text itself follows the parameter that it names.
                    let named = given.split('*').any(|part| part.trim().starts_with(char::is_alphabetic));
                    one = match named {
                        true => format!("{given} * {}", 1.0 / pieces as f64).into(),
                        false => piece.into(),
                    };
                }
                inner.insert(key, one);
            }
            inner.fmt();
            let mut outer = InlineTable::new();
            outer.insert("repeat", (pieces as i64).into());
            outer.insert("steps", Value::Array(std::iter::once(Value::InlineTable(inner)).collect()));
            outer.fmt();
            step.replace(outer);
            Ok(())
        })
    }

    /// Lets a step take another path.
    ///
    /// # Errors
    /// Where that cannot be written.
    pub fn path(&mut self, at: &StepRef, path: &Path) -> Edited {
        self.step(at, |mut step| {
            for row in &VERBS {
                if step.keys().contains_key(row.name) {
                    by_choice(step.keys(), &[row.name])?;
                    step.keys().insert(row.name, value(path.to_string()));
                }
            }
            // An engine takes no doorbell batches.
            if path.engine.is_some() {
                step.keys().remove("batch");
            }
            step.tidy();
            Ok(())
        })
    }

    /// Sets a key of an object.
    ///
    /// # Errors
    /// Where the text has no table of that name.
    pub fn object(&mut self, name: &str, key: &str, to: impl Into<Value>) -> Edited {
        let object = self.0.get_mut("object").and_then(|objects| objects.get_mut(name));
        match object {
            Some(Item::Value(Value::InlineTable(table))) => {
                table.insert(key, to.into());
                table.fmt();
            }
            other => {
                let table = other.and_then(Item::as_table_like_mut);
                table.ok_or_else(|| format!("it has no `[object.{name}]`"))?.insert(key, value(to));
            }
        }
        Ok(())
    }

    /// Sets a key of `[design]`.
    ///
    /// # Errors
    /// Where the text has no such table.
    pub fn design(&mut self, key: &str, to: &str) -> Edited {
        let design = self.0.get_mut("design").and_then(Item::as_table_like_mut);
        let design = design.ok_or("it has no `[design]`")?;
        match design.get_mut(key).and_then(Item::as_value_mut) {
            Some(old) => {
                // The comment behind the value belongs to it.
                let decor = old.decor().clone();
                *old = to.into();
                *old.decor_mut() = decor;
            }
            None => {
                design.insert(key, value(to));
            }
        }
        Ok(())
    }

    /// States a plain number of `[parameters]` with the ends of its interval and where it comes from, where
    /// there is none of that name yet.
    pub fn parameter(&mut self, name: &str, [number, low, high]: [f64; 3], whence: &str) {
        let parameters = self.0.entry("parameters").or_insert_with(toml_edit::table);
        let Some(parameters) = parameters.as_table_like_mut() else { return };
        if parameters.get(name).is_none() {
            let mut table = InlineTable::new();
            for (key, number) in [("value", number), ("low", low), ("high", high)] {
                table.insert(key, ((number * 1e3).round() / 1e3).into());
            }
            // It is a guess of ours, and no estimate of the design's author.
            table.insert("provenance", "assumed".into());
            table.decor_mut().set_suffix(format!(" # {whence}"));
            parameters.insert(name, value(table));
        }
    }

    /// Lets a named mix be filled in another order.
    ///
    /// # Errors
    /// Where the text has no such mix.
    pub fn fill(&mut self, mix: &str, order: &[String]) -> Edited {
        let mixes = self.0.get_mut("mix").and_then(Item::as_array_of_tables_mut);
        let mut tables = mixes.into_iter().flat_map(ArrayOfTables::iter_mut);
        let table = tables.find(|one| text_of(*one, "name") == Some(mix));
        let table = table.ok_or_else(|| format!("it has no `[[mix]]` named `{mix}`"))?;
        table.insert("fill", value(order.iter().map(String::as_str).collect::<Array>()));
        Ok(())
    }

    /// Adds a copy of an alternative under another name, its steps changed by `rewrite`, which gets
    /// each step's keys.
    ///
    /// # Errors
    /// Where that cannot be written, and what `rewrite` refuses.
    pub fn add_like(
        &mut self,
        alternative: &str,
        name: &str,
        description: &str,
        mut rewrite: impl FnMut(&mut dyn TableLike) -> Edited,
    ) -> Edited {
        let own = |one: &&mut Table| text_of(*one, "name") == Some(alternative);
        let own = self.alternatives()?.iter_mut().find(own);
        let scenario = own.and_then(|own| own.get("scenario").cloned());
        let mut table = self.with_steps(alternative)?.clone();
        for key in ["rows", "hit_ratio", "mixed", "like", "scenario"] {
            table.remove(key);
        }
        // Steps may be lent by an alternative of another scenario.
        if let Some(scenario) = scenario {
            table.insert("scenario", scenario);
        }
        table.insert("name", value(name));
        table.insert("description", value(description));
        table.decor_mut().set_prefix("\n");
        rewrite_steps(&mut table, &mut |step| {
            // Which values are planned was searched for, and of a copy none was.
            let own = step.iter().map(|(key, _)| key).filter(|key| *key != MARK);
            let keys: Vec<String> = own.map(str::to_string).collect();
            by_choice(step, &keys.iter().map(String::as_str).collect::<Vec<_>>())?;
            rewrite(step)
        })?;
        self.alternatives()?.push(table);
        Ok(())
    }

    /// Changes every step of an alternative.
    ///
    /// # Errors
    /// Where the text has no such alternative, and what `rewrite` refuses.
    pub fn rewrite(
        &mut self,
        alternative: &str,
        mut rewrite: impl FnMut(&mut dyn TableLike) -> Edited,
    ) -> Edited {
        rewrite_steps(self.with_steps(alternative)?, &mut rewrite)
    }

    /// Replaces a list of steps by the lines of `steps`.
    ///
    /// # Errors
    /// Where the text has no such list.
    pub fn replace_steps(&mut self, at: &StepRef, steps: &[String]) -> Edited {
        let text = format!("[\n{}]", steps.iter().map(|step| format!("    {step},\n")).collect::<String>());
        let list = text.parse().map_err(|error| format!("its steps make no list: {error}"))?;
        *self.list(at)? = Item::Value(list);
        Ok(())
    }

    /// Puts one case of a branch in its place: the first of `cases` that it has.
    ///
    /// # Errors
    /// Where the branch is not one of an operation's own list.
    pub fn keep_case(&mut self, at: &StepRef, cases: [&str; 2]) -> Edited {
        let list = self.list(at)?.as_array_mut();
        let list = list.ok_or("its steps are tables of their own; write them as a list in brackets")?;
        let mut count = 0;
        for position in 0..list.len() {
            let start = count;
            let Some(step) = list.get_mut(position).and_then(Value::as_inline_table_mut) else { continue };
            if start == at.index {
                let case = cases.iter().find_map(|case| step.get(case).and_then(Value::as_array));
                let kept: Vec<Value> = case.ok_or("the branch has no such case")?.iter().cloned().collect();
                let decor = step.decor().clone();
                list.remove(position);
                for (offset, mut one) in kept.into_iter().enumerate() {
                    *one.decor_mut() = decor.clone();
                    list.insert_formatted(position + offset, one);
                }
                return Ok(());
            }
            count += 1;
            inside(step, "", &mut count, &mut |_, _, _| false);
        }
        Err("the branch stands within another step".to_string())
    }

    /// The changed text.
    pub fn text(&self) -> String {
        self.changed().text
    }

    /// The changed text, and where its steps stood before.
    pub fn changed(&self) -> ChangedText {
        let (mut document, mut origins) = (self.0.clone(), StepOrigins::new());
        walk_all(&mut document, |place, mut step| {
            let mark = step.keys().remove(MARK);
            let origin = mark.as_ref().and_then(Item::as_str).map(str::to_string);
            origins.insert(place.to_string(), origin);
        });
        ChangedText { text: document.to_string(), origins }
    }
}

fn rewrite_steps(table: &mut Table, rewrite: &mut dyn FnMut(&mut dyn TableLike) -> Edited) -> Edited {
    let mut refused = Ok(());
    for key in OPERATIONS {
        if let Some(item) = table.get_mut(key) {
            walk(item, "", &mut 0, &mut |_, _, mut step| {
                refused = rewrite(step.keys());
                refused.is_err()
            });
        }
        if refused.is_err() {
            break;
        }
    }
    refused
}

/// The path that a step's keys name, with its key.
pub fn path_of(step: &dyn TableLike) -> Option<(&'static str, String)> {
    VERBS.iter().find_map(|row| Some((row.name, text_of(step, row.name)?.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"# a design
[[alternative]]
name = "a"   # ours
request = [
    { compute = "x", time = "5 ns" },   # first
    { cached = "v", hit = [
        { read = "x-y", bytes = "16 MiB" },
    ], miss = [ { read = "x-z", bytes = "chunk * 0.5", batch = 4 } ] },
    { write = "x-y", bytes = "1 B" },
]
"#;

    fn at(index: usize) -> StepRef {
        StepRef { alternative: "a".into(), family: "a".into(), operation: "request".into(), index }
    }

    #[test]
    fn steps_are_found_depth_first_and_the_rest_stays() {
        let mut edit = Edit::new(TEXT).expect("TOML");
        edit.segment(&at(2), 4, "4 MiB").expect("a READ");
        assert_eq!(
            edit.text(),
            TEXT.replace(
                "{ read = \"x-y\", bytes = \"16 MiB\" }",
                "{ repeat = 4, steps = [{ read = \"x-y\", bytes = \"4 MiB\" }] }"
            )
        );
        let mut edit = Edit::new(TEXT).expect("TOML");
        edit.segment(&at(3), 2, "4 MiB").expect("a READ");
        assert!(edit.text().contains("bytes = \"chunk * 0.5 * 0.5\""), "{}", edit.text());
        edit.batch(&at(4), 16).expect("the READ inside");
        assert!(edit.text().contains("batch = 16 }"), "{}", edit.text());
        assert!(edit.step(&at(9), |_| Ok(())).is_err());
    }

    #[test]
    fn a_case_takes_the_place_of_its_branch() {
        let mut edit = Edit::new(TEXT).expect("TOML");
        edit.keep_case(&at(1), ["hit", "then"]).expect("a branch");
        let text = edit.text();
        assert!(!text.contains("cached") && !text.contains("x-z"), "{text}");
        assert!(
            text.contains("{ read = \"x-y\", bytes = \"16 MiB\" },") && text.contains("# first"),
            "{text}"
        );
    }
}
