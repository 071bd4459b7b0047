//! Changes to a design's text that keep its comments and layout.

use offpath_route::{Path, VERBS};
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike, Value, value};

/// Where a step stands: its alternative, the operation, and how many steps come before it, those
/// that hold others counted before what they hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepRef {
    /// The alternative.
    pub alternative: String,
    /// The operation's key, as in `request` or `read`.
    pub operation: String,
    /// The position, depth first.
    pub index: usize,
}

/// A design's text, to be changed.
#[derive(Clone, Debug)]
pub struct Edit(DocumentMut);

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

/// What a walk does with each step: the position and the step; it ends the walk by `true`.
type Visitor<'v> = dyn FnMut(usize, StepMut<'_>) -> bool + 'v;

fn walk(item: &mut Item, count: &mut usize, visit: &mut Visitor<'_>) -> bool {
    match item {
        Item::ArrayOfTables(tables) => tables.iter_mut().any(|table| {
            let index = next(count);
            visit(index, StepMut::Table(table)) || inside(table, count, visit)
        }),
        Item::Value(Value::Array(list)) => walk_list(list, count, visit),
        _ => false,
    }
}

fn walk_list(list: &mut Array, count: &mut usize, visit: &mut Visitor<'_>) -> bool {
    list.iter_mut().any(|one| match one {
        Value::InlineTable(table) => {
            let index = next(count);
            visit(index, StepMut::Inline(table)) || inside(table, count, visit)
        }
        Value::Array(list) => walk_list(list, count, visit),
        _ => false,
    })
}

fn inside(table: &mut dyn TableLike, count: &mut usize, visit: &mut Visitor<'_>) -> bool {
    LISTS.iter().any(|key| table.get_mut(key).is_some_and(|item| walk(item, count, visit)))
}

fn next(count: &mut usize) -> usize {
    *count += 1;
    *count - 1
}

fn text_of<'t>(table: &'t dyn TableLike, key: &str) -> Option<&'t str> {
    table.get(key).and_then(Item::as_str)
}

impl Edit {
    /// The text of a design that was read without errors; `None` where it is not TOML.
    pub fn new(text: &str) -> Option<Edit> {
        text.parse().ok().map(Edit)
    }

    fn alternatives(&mut self) -> Option<&mut ArrayOfTables> {
        self.0.get_mut("alternative")?.as_array_of_tables_mut()
    }

    /// The alternative whose steps `name` takes.
    fn with_steps(&mut self, name: &str) -> Option<&mut Table> {
        let tables = self.alternatives()?;
        let like = tables.iter().find(|one| text_of(*one, "name") == Some(name))?;
        let name = text_of(like, "like").unwrap_or(name).to_string();
        tables.iter_mut().find(|one| text_of(*one, "name") == Some(&name))
    }

    fn step(&mut self, at: &StepRef, change: impl FnOnce(StepMut<'_>)) -> Option<()> {
        let item = self.with_steps(&at.alternative)?.get_mut(&at.operation)?;
        let mut change = Some(change);
        let found = walk(item, &mut 0, &mut |index, step| {
            if index != at.index {
                return false;
            }
            if let Some(change) = change.take() {
                change(step);
            }
            true
        });
        found.then_some(())
    }

    /// What the file writes for a key of a step.
    pub fn raw(&self, at: &StepRef, key: &str) -> Option<String> {
        let mut found = None;
        self.clone().step(at, |mut step| found = text_of(step.keys(), key).map(str::to_string))?;
        found
    }

    /// A step as the file writes it, to be changed and put elsewhere.
    pub fn copy(&self, at: &StepRef) -> Option<InlineTable> {
        let mut found = None;
        self.clone().step(at, |mut step| {
            let mut copy = InlineTable::new();
            for (key, item) in step.keys().iter() {
                if let Some(value) = item.as_value() {
                    copy.insert(key, value.clone().decorated(" ", ""));
                }
            }
            found = Some(copy);
        })?;
        found
    }

    /// Posts a step in batches, or alone where `batch` is 1.
    pub fn batch(&mut self, at: &StepRef, batch: u32) -> Option<()> {
        self.step(at, |mut step| {
            if batch > 1 {
                step.keys().insert("batch", value(i64::from(batch)));
            } else {
                step.keys().remove("batch");
            }
            step.tidy();
        })
    }

    /// Splits a step's payload into `pieces` equal ones, one after another. `piece` is their size;
    /// a payload that the file writes by a parameter's name keeps it.
    pub fn segment(&mut self, at: &StepRef, pieces: u64, piece: &str) -> Option<()> {
        let mut done = None;
        self.step(at, |mut step| {
            let mut inner = InlineTable::new();
            for (key, item) in step.keys().iter() {
                let Some(one) = item.as_value() else { return };
                let mut one = one.clone();
                if key == "bytes" {
                    let given = one.as_str().unwrap_or_default();
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
            done = Some(());
        })?;
        done
    }

    /// Lets a step take another path.
    pub fn path(&mut self, at: &StepRef, path: &Path) -> Option<()> {
        self.step(at, |mut step| {
            for row in &VERBS {
                if step.keys().contains_key(row.name) {
                    step.keys().insert(row.name, value(path.to_string()));
                }
            }
            // An engine takes no doorbell batches.
            if path.engine.is_some() {
                step.keys().remove("batch");
            }
            step.tidy();
        })
    }

    /// Sets a key of an object.
    pub fn object(&mut self, name: &str, key: &str, to: impl Into<Value>) -> Option<()> {
        let object = self.0.get_mut("object")?.get_mut(name)?;
        match object {
            Item::Value(Value::InlineTable(table)) => {
                table.insert(key, to.into());
                table.fmt();
            }
            other => {
                other.as_table_like_mut()?.insert(key, value(to));
            }
        }
        Some(())
    }

    /// Sets a key of `[design]`.
    pub fn design(&mut self, key: &str, to: &str) -> Option<()> {
        let design = self.0.get_mut("design")?.as_table_like_mut()?;
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
        Some(())
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
    pub fn fill(&mut self, mix: &str, order: &[String]) -> Option<()> {
        let mixes = self.0.get_mut("mix")?.as_array_of_tables_mut()?;
        let table = mixes.iter_mut().find(|one| text_of(*one, "name") == Some(mix))?;
        table.insert("fill", value(order.iter().map(String::as_str).collect::<Array>()));
        Some(())
    }

    /// Adds a copy of an alternative under another name, its steps changed by `rewrite`, which gets
    /// each step's keys.
    pub fn add_like(
        &mut self,
        alternative: &str,
        name: &str,
        description: &str,
        mut rewrite: impl FnMut(&mut dyn TableLike),
    ) -> Option<()> {
        let own = |one: &&mut Table| text_of(*one, "name") == Some(alternative);
        let scenario = self.alternatives()?.iter_mut().find(own)?.get("scenario").cloned();
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
        rewrite_steps(&mut table, &mut rewrite);
        self.alternatives()?.push(table);
        Some(())
    }

    /// Changes every step of an alternative.
    pub fn rewrite(&mut self, alternative: &str, mut rewrite: impl FnMut(&mut dyn TableLike)) -> Option<()> {
        let table = self.with_steps(alternative)?;
        rewrite_steps(table, &mut rewrite);
        Some(())
    }

    /// Replaces a list of steps by the lines of `steps`.
    pub fn replace_steps(&mut self, at: &StepRef, steps: &[String]) -> Option<()> {
        let item = self.with_steps(&at.alternative)?.get_mut(&at.operation)?;
        let text = format!("[\n{}]", steps.iter().map(|step| format!("    {step},\n")).collect::<String>());
        *item = Item::Value(text.parse().ok()?);
        Some(())
    }

    /// Puts one case of a branch in its place, wherever `is` holds for the branch's other case; says
    /// whether it did.
    pub fn keep_case(&mut self, at: &StepRef, case: &str) -> Option<()> {
        let item = self.with_steps(&at.alternative)?.get_mut(&at.operation)?;
        let list = item.as_array_mut()?;
        let mut count = 0;
        for position in 0..list.len() {
            let start = count;
            let step = list.get_mut(position)?.as_inline_table_mut()?;
            if start == at.index {
                let kept: Vec<Value> = step.get(case)?.as_array()?.iter().cloned().collect();
                let decor = step.decor().clone();
                list.remove(position);
                for (offset, mut one) in kept.into_iter().enumerate() {
                    *one.decor_mut() = decor.clone();
                    list.insert_formatted(position + offset, one);
                }
                return Some(());
            }
            count += 1;
            inside(step, &mut count, &mut |_, _| false);
        }
        None
    }

    /// The changed text.
    pub fn text(&self) -> String {
        self.0.to_string()
    }
}

fn rewrite_steps(table: &mut Table, rewrite: &mut dyn FnMut(&mut dyn TableLike)) {
    for key in ["request", "read", "update", "insert", "scan", "readmodifywrite"] {
        if let Some(item) = table.get_mut(key) {
            walk(item, &mut 0, &mut |_, mut step| {
                rewrite(step.keys());
                false
            });
        }
    }
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
        StepRef { alternative: "a".into(), operation: "request".into(), index }
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
        assert!(edit.step(&at(9), |_| {}).is_none());
    }

    #[test]
    fn a_case_takes_the_place_of_its_branch() {
        let mut edit = Edit::new(TEXT).expect("TOML");
        edit.keep_case(&at(1), "hit").expect("a branch");
        let text = edit.text();
        assert!(!text.contains("cached") && !text.contains("x-z"), "{text}");
        assert!(
            text.contains("{ read = \"x-y\", bytes = \"16 MiB\" },") && text.contains("# first"),
            "{text}"
        );
    }
}
