//! A card that was learnt, as a profile: the base's files under a name of their own, with what was fitted in its place.

use super::{CalibrateRequest, CalibratedLogAnswer};
use offpath_learn::{Calibration, ErrorSummary, KeptReason, LearntDoubt, LearntNumber, PacketHeader};
use offpath_profile::{
    Category, LearntErrors, Library, Number, Provenance, System, SystemRequest, read_text,
};
use offpath_quantity::{Bytes, Quantity};
use offpath_terminal::failure::Failure;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use toml_edit::{Array, DocumentMut, InlineTable, Table, Value};

/// A file of a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardFile {
    /// Its name, beside the others.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// What the card has otherwise than the base.
pub(super) struct ChangedNumber {
    file: String,
    key: String,
    value: Quantity,
    low: Quantity,
    high: Quantity,
    /// Which guess it is, and why it is none that was measured.
    doubt: Option<(Provenance, String)>,
    /// Where the base has it from, where that is what was measured of the machine, and the logs hold it.
    confirmed: Option<String>,
}

/// How a number is known in the card, and why it is a guess there. The points fit with one that others may stand for or that they tell
/// roughly, and hold it; one that the search ends at they do not fit, and one that they leave as open as the base does they say nothing
/// of.
pub(super) fn known(of: &LearntNumber) -> (Provenance, Option<&'static str>) {
    match &of.doubt {
        None if of.is_told => (Provenance::MeasuredHere, None),
        None => (Provenance::HeldHere, Some("rough")),
        Some(LearntDoubt::DoubtedLogs) => (Provenance::HeldHere, Some("doubted-logs")),
        Some(LearntDoubt::BeyondBase) => (Provenance::HeldHere, Some("beyond-base")),
        Some(LearntDoubt::Replaceable { .. }) => (Provenance::HeldHere, Some("replaceable")),
        Some(LearntDoubt::AtBound) => (Provenance::Assumed, Some("at-bound")),
        Some(LearntDoubt::Untold) => (Provenance::Assumed, Some("untold")),
        Some(LearntDoubt::NotDescribed) => (Provenance::Assumed, Some("not-described")),
    }
}

/// The system with the numbers of the card, each on every machine that has it from the same file; `plain` is the system without what
/// the user chose.
pub(super) fn changed(system: &System, plain: &System, changes: &[ChangedNumber]) -> Result<System, Failure> {
    let values = plain.numbers.iter().filter_map(|(name, number)| {
        let own = changes.iter().find(|one| (&one.file, &one.key) == (&number.file, &number.key))?;
        Some((name.as_str(), own.value))
    });
    Ok(system.with_all(values)?)
}

/// Why a number is none that was measured.
fn why_guessed(of: &LearntNumber) -> Option<String> {
    Some(match &of.doubt {
        None if of.is_told => return None,
        None if of.alike.is_empty() => "the logs do not tell it to 5%".to_string(),
        None => format!("the logs do not tell it to 5%, since it stands for {}, too", of.alike.join(", ")),
        Some(LearntDoubt::NotDescribed) => {
            "the model does not describe this card, so that what fits best is nothing it has".to_string()
        }
        Some(LearntDoubt::DoubtedLogs) => {
            "the logs tell it, and say of themselves that they are no measurement of one card".to_string()
        }
        Some(LearntDoubt::AtBound) => "the search ends there, and the logs ask for more".to_string(),
        Some(LearntDoubt::Untold) => "the logs tell it no better than the base does".to_string(),
        Some(LearntDoubt::BeyondBase) => {
            format!("fits in place of {}, too, beyond what the base allows", of.alike.join(", "))
        }
        Some(LearntDoubt::Replaceable { by, .. }) if by.is_empty() => {
            "the logs fit as well with it elsewhere".to_string()
        }
        Some(LearntDoubt::Replaceable { by, .. }) => {
            format!("the logs fit as well by {} in its place", super::in_words(by))
        }
    })
}

/// The numbers that were fitted, those that may be what others were fitted for or that the points hold, and those that the user chose:
/// the card is the one that the points were held to. Where the card is the base itself, no guess takes the place of what was measured of it.
pub(super) fn changes(
    learnt: &Calibration,
    (system, plain): (&System, &System),
    is_same_card: bool,
) -> Vec<ChangedNumber> {
    // What is chosen stands in no file; what it stands in place of does.
    let place = |name: &str| plain.numbers.get(name).map(|number| (number.file.clone(), number.key.clone()));
    let fitted = learnt.numbers.iter().filter_map(|one| {
        let (file, key) = place(&one.name)?;
        let doubt = why_guessed(one).map(|why| (known(one).0, why));
        Some(ChangedNumber {
            file,
            key,
            value: one.value,
            low: one.low,
            high: one.high,
            doubt,
            confirmed: None,
        })
    });
    let kept = learnt.kept.iter().filter_map(|one| {
        let (file, key) = place(&one.name)?;
        if one.reason == KeptReason::Confirmed {
            let confirmed = Some(system.numbers.get(&one.name)?.source.clone());
            let value = one.value;
            return Some(ChangedNumber { file, key, value, low: value, high: value, doubt: None, confirmed });
        }
        let guess = if learnt.is_described { Provenance::HeldHere } else { Provenance::Assumed };
        let ((low, high), why) = match (one.replacing, one.held) {
            (Some(ends), _) => {
                (ends, "the logs fit as well with it in place of a number that was fitted".to_string())
            }
            (None, Some(ends)) if !is_same_card || one.provenance.is_guess() => {
                let own = system.numbers.get(&one.name)?;
                (ends, format!("the logs do not tell it, and fit nowhere beyond; its value: {}", own.source))
            }
            _ => return None,
        };
        Some(ChangedNumber {
            file,
            key,
            value: one.taken,
            low,
            high,
            doubt: Some((guess, why)),
            confirmed: None,
        })
    });
    let mut all: Vec<ChangedNumber> = fitted.chain(kept).collect();
    for (name, own, Number { file, key, .. }) in chosen(system, plain) {
        if all.iter().all(|one| (&one.file, &one.key) != (file, key)) {
            all.push(ChangedNumber {
                file: file.clone(),
                key: key.clone(),
                value: own.value,
                low: own.value,
                high: own.value,
                doubt: Some((Provenance::Assumed, format!("{} gave it", by_whom(name, own)))),
                confirmed: None,
            });
        }
    }
    all
}

/// What was measured of the base's machines before, and stays: numbers that no log of these fits anew, each by its first name.
pub(super) fn staying(system: &System, plain: &System, changes: &[ChangedNumber]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let own = system.numbers.iter().filter(|(name, number)| {
        let Some(place) = plain.numbers.get(*name).map(|own| (&own.file, &own.key)) else { return false };
        matches!(number.provenance, Provenance::MeasuredHere | Provenance::HeldHere)
            && changes.iter().all(|one| (&one.file, &one.key) != place)
            && seen.insert(place)
    });
    own.map(|(name, _)| name.clone()).collect()
}

/// An option that gave a number.
fn by_whom(name: &str, chosen: &Number) -> String {
    match chosen.file.ends_with(".toml") {
        true => format!("`--overlay {}`", chosen.file),
        false => format!("`--set {name}`"),
    }
}

/// What the user chose, by a setting or an overlay, and the number that it stands in place of: `plain` is the system without.
fn chosen<'s>(
    system: &'s System,
    plain: &'s System,
) -> impl Iterator<Item = (&'s String, &'s Number, &'s Number)> {
    let chosen = system.numbers.iter().filter(|(_, number)| number.provenance == Provenance::Set);
    chosen.filter_map(|(name, number)| Some((name, number.as_ref(), plain.numbers.get(name)?.as_ref())))
}

/// Refuses what the card's files cannot say, before anything is fitted beside it: a number chosen of one machine and not of another that
/// has it from the same file, one that the base's files leave out, and one that is a multiple of another.
pub(super) fn check_chosen(system: &System, plain: &System) -> Result<(), Failure> {
    if let Some(scale) = system.scales.iter().find(|scale| !plain.scales.contains(scale)) {
        return Err(Failure::input(
            format!(
                "an overlay makes `{}` a multiple of `{}`, and a card's file holds numbers alone: the card would be learnt with it and \
                 written without",
                scale.name, scale.of
            ),
            "leave it out here, and give it to the commands that ask about the card; or name an overlay that gives values",
        ));
    }
    for (name, own, number) in chosen(system, plain) {
        let is_apart = |(other, one): &(&String, &Arc<Number>)| {
            (&one.file, &one.key) == (&number.file, &number.key) && system.numbers[*other].value != own.value
        };
        if let Some((other, _)) = plain.numbers.iter().find(is_apart) {
            return Err(Failure::input(
                format!(
                    "{} gives `{name}` {} and leaves `{other}` at {}, and the card has one number for both",
                    by_whom(name, own),
                    own.value,
                    system.numbers[other].value
                ),
                format!("give it too: `--set {other}={}`", own.value),
            ));
        }
    }
    let is_new = |(name, number): &(&String, &Arc<Number>)| {
        number.provenance == Provenance::Set && !plain.numbers.contains_key(*name)
    };
    if let Some((name, number)) = system.numbers.iter().find(is_new) {
        return Err(Failure::input(
            format!(
                "{} gives `{name}`, which the files of the base leave out: the card would be learnt with it and written without",
                by_whom(name, number)
            ),
            "write the number into a file of the base, or leave it out",
        ));
    }
    Ok(())
}

/// Loads the card as its files would have it: one that does not load is none to write.
pub(super) fn check_loads(library: &Library, files: &[CardFile]) -> Result<(), Failure> {
    let mut library = library.clone();
    files.iter().for_each(|file| library.insert_file(Path::new(&file.name), &file.text));
    let request = SystemRequest { device: &files[0].name, ..SystemRequest::default() };
    library.load(&request).map(drop).map_err(|error| {
        Failure::input(
            format!(
                "offpath itself refuses the card that it learnt, and writes nothing: {error}. This is a fault of offpath, not of the logs"
            ),
            "report it with the logs; `--pin NAME` of the number that is named leaves it as the base has it",
        )
    })
}

fn broken(file: &str, what: impl std::fmt::Display) -> Failure {
    Failure::input(
        format!("{file} cannot be written on: {what}"),
        "use a shipped device as the base, or correct the file",
    )
}

/// A profile's category and name by its file, as in `profiles/hosts/srv.toml`.
fn of_file(file: &str) -> Option<(Category, &str)> {
    let mut parts = file.trim_end_matches(".toml").rsplit('/');
    let name = parts.next()?;
    let folder = parts.next()?;
    let category = Category::ALL.into_iter().find(|category| category.directory() == folder)?;
    Some((category, name))
}

/// A file's text. One that ships is the program's own, whatever lies in a folder of that name.
fn source(library: &Library, file: &str) -> Result<String, Failure> {
    match of_file(file).filter(|_| file.starts_with("profiles/")) {
        Some((category, name)) if library.source(category, name).is_ok() => {
            Ok(library.source(category, name)?.to_string())
        }
        _ => read_text(Path::new(file)).map_err(|error| broken(file, error)),
    }
}

fn parsed(file: &str, text: &str) -> Result<DocumentMut, Failure> {
    text.parse().map_err(|error: toml_edit::TomlError| broken(file, error.message()))
}

fn written(quantity: Quantity) -> Value {
    match quantity {
        Quantity::Count(count) => {
            i64::try_from(count).map_or_else(|_| Value::from(count.to_string()), Value::from)
        }
        Quantity::Ratio(ratio) => Value::from(ratio),
        other => Value::from(other.to_string()),
    }
}

/// Puts fitted numbers into a file's text.
fn put(
    document: &mut DocumentMut,
    file: &str,
    numbers: &[&ChangedNumber],
    source: &str,
) -> Result<(), Failure> {
    for one in numbers {
        let missing = || broken(file, format!("it has no number `{}`", one.key));
        let (table, key) = one.key.rsplit_once('.').ok_or_else(missing)?;
        let item = document.get_mut(table).and_then(|table| table.get_mut(key)).ok_or_else(missing)?;
        let value = item.as_value_mut().ok_or_else(missing)?;
        let decor = value.decor().clone();
        let mut number = InlineTable::new();
        number.insert("value", written(one.value));
        if one.confirmed.is_none() {
            number.insert("low", written(one.low));
            number.insert("high", written(one.high));
        }
        // What makes the points fit, and need not be so, is no measurement of it.
        let (source, provenance) = match (&one.doubt, &one.confirmed) {
            (Some((guess, why)), _) => (format!("{why}; {source}"), *guess),
            (None, Some(own)) => (format!("{own}; the logs hold it; {source}"), Provenance::MeasuredHere),
            (None, None) => (source.to_string(), Provenance::MeasuredHere),
        };
        number.insert("source", Value::from(source));
        number.insert("provenance", Value::from(provenance.name()));
        *value = Value::InlineTable(number);
        *value.decor_mut() = decor;
    }
    Ok(())
}

/// A number of the network as the logs state it; where it may be more, to what.
fn state(bed: &mut DocumentMut, key: &str, size: Bytes, at_most: Option<Bytes>, source: String) {
    let is_network = |item: &toml_edit::Item| {
        item.get("kind").and_then(|kind| kind.as_str()) == Some("network") && item.get(key).is_some()
    };
    for (_, item) in bed.iter_mut().filter(|(_, item)| is_network(item)) {
        let mut number = InlineTable::new();
        number.insert("value", written(Quantity::Bytes(size)));
        let mut provenance = Provenance::MeasuredHere;
        if let Some(at_most) = at_most {
            number.insert("low", written(Quantity::Bytes(size)));
            number.insert("high", written(Quantity::Bytes(at_most)));
            // The link layer is stated, and what its packets have follows.
            provenance = Provenance::Datasheet;
        }
        number.insert("source", Value::from(source.as_str()));
        number.insert("provenance", Value::from(provenance.name()));
        item[key] = toml_edit::value(number);
    }
}

/// The table of what predictions of a kind of figure were wrong by.
fn of_errors(errors: &LearntErrors, source: &str) -> Table {
    // Six digits tell more than any error is known to.
    let share = |within: f64| Quantity::Ratio((within * 1e6).round() / 1e6);
    let mut table = Table::new();
    table.insert("kind", toml_edit::value("errors"));
    table.insert("figure", toml_edit::value(errors.figure.as_str()));
    table.insert("traffic", toml_edit::value(errors.traffic.iter().collect::<Array>()));
    table.insert("path", toml_edit::value(errors.path.as_str()));
    if !errors.bound_by.is_empty() {
        table.insert("bound_by", toml_edit::value(errors.bound_by.iter().collect::<Array>()));
    }
    for (key, value) in [
        ("points", Quantity::Count(errors.points)),
        ("half_within", share(errors.half_within)),
        ("eight_of_ten_within", share(errors.eight_of_ten_within)),
        ("nine_of_ten_within", share(errors.nine_of_ten_within)),
        ("all_within", share(errors.all_within)),
    ] {
        let mut number = InlineTable::new();
        number.insert("value", written(value));
        number.insert("source", Value::from(source));
        number.insert("provenance", Value::from(Provenance::MeasuredHere.name()));
        table.insert(key, toml_edit::value(number));
    }
    table
}

/// Tables of errors as a file has them, each under a name of its own.
fn as_text(tables: Vec<Table>) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let text = tables.into_iter().map(|mut table| {
        let figure = table.get("figure").and_then(|figure| figure.as_str()).unwrap_or_default().to_string();
        let count = counts.entry(figure.clone()).or_default();
        *count += 1;
        let name = if *count > 1 { format!("{figure}_errors_{count}") } else { format!("{figure}_errors") };
        table.decor_mut().clear();
        format!(
            "\n# What predictions of {figure} were wrong by, of runs and logs that the numbers were not fitted to, as logarithms; \
             `offpath path --as` widens what it says of such runs by it.\n[{name}]\n{table}"
        )
    });
    text.collect()
}

/// What becomes of a table of errors that the base has.
#[derive(Clone, Debug)]
pub(super) struct BaseErrors {
    pub figure: String,
    pub traffic: Vec<String>,
    /// Why it is not in the card; nothing where it stays.
    pub gone: Option<String>,
    /// As the card has it.
    table: Table,
}

/// The tables of errors of a base that is the card itself. One speaks for the card as long as each number that was measured here is still
/// within what was known of it, and as far as these logs say nothing newer of such traffic on such a path.
pub(super) fn errors_of_base(
    bed: &DocumentMut,
    plain: &System,
    changes: &[ChangedNumber],
    learnt: &Calibration,
) -> Vec<BaseErrors> {
    let is_beyond = |one: &&ChangedNumber| {
        let mut own = plain.numbers.values().filter(|own| (&own.file, &own.key) == (&one.file, &one.key));
        own.any(|own| {
            let ends = (own.low.unwrap_or(own.value).base(), own.high.unwrap_or(own.value).base());
            matches!(own.provenance, Provenance::MeasuredHere | Provenance::HeldHere)
                && !(ends.0..=ends.1).contains(&one.value.base())
        })
    };
    let beyond = changes.iter().find(is_beyond);
    let words = |table: &Table, key: &str| -> Vec<String> {
        let array = table.get(key).and_then(|item| item.as_array());
        array.into_iter().flatten().filter_map(|word| Some(word.as_str()?.to_string())).collect()
    };
    let tables = bed.iter().filter_map(|(_, item)| item.as_table());
    let tables = tables.filter(|table| table.get("kind").and_then(|kind| kind.as_str()) == Some("errors"));
    let of = |table: &Table| {
        let word = |key: &str| table.get(key).and_then(|item| item.as_str()).unwrap_or_default().to_string();
        let (figure, path, mut traffic) = (word("figure"), word("path"), words(table, "traffic"));
        let had = traffic.clone();
        let newer = learnt
            .learnt_errors
            .iter()
            .map(|one| &one.errors)
            .filter(|one| one.figure == figure && (path.is_empty() || one.path == path));
        let newer: Vec<&String> = newer.flat_map(|one| &one.traffic).collect();
        traffic.retain(|one| !newer.contains(&one));
        let gone = match beyond {
            _ if traffic.is_empty() => Some("these logs say it anew".to_string()),
            Some(one) => Some(format!("`{}` is no more what it was when they were seen", one.key)),
            None => None,
        };
        let mut table = table.clone();
        table.insert("traffic", toml_edit::value(traffic.iter().collect::<Array>()));
        BaseErrors { figure, traffic: if gone.is_some() { had } else { traffic }, gone, table }
    };
    tables.map(of).collect()
}

fn file_name(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

/// A file's name without `.toml`.
fn stem(file: &str) -> &str {
    file_name(file).trim_end_matches(".toml")
}

/// The files that the card's own takes in: the base's device, and the testbed.
fn own_files(
    library: &Library,
    request: &CalibrateRequest,
    system: &System,
) -> Result<(String, String), Failure> {
    let device_file = match request.base.ends_with(".toml") {
        true => request.base.clone(),
        false => {
            let listed = library.names(Category::Device).into_iter().find(|one| one.name == request.base);
            listed.map(|one| one.file).ok_or_else(|| broken(&request.base, "it has no file"))?
        }
    };
    let testbed = request.system.testbed.clone().unwrap_or_else(|| system.testbed.clone());
    let testbed_file = match testbed.ends_with(".toml") {
        true => testbed.clone(),
        false => {
            let listed = library.names(Category::Testbed).into_iter().find(|one| one.name == testbed);
            listed.map(|one| one.file).unwrap_or_else(|| device_file.clone())
        }
    };
    Ok((device_file, testbed_file))
}

/// Whether the base's file holds the testbed that the logs were taken in, as that of `offpath new device --from` does: then it is of the
/// very machines.
pub(super) fn is_of_same_machines(
    library: &Library,
    request: &CalibrateRequest,
    system: &System,
) -> Result<bool, Failure> {
    let (device, testbed) = own_files(library, request, system)?;
    Ok(device == testbed && !device.starts_with("profiles/"))
}

/// The names of the files that a card may have: its own, and beside it each other file in which a number may be fitted.
pub(super) fn names(
    library: &Library,
    request: &CalibrateRequest,
    system: &System,
) -> Result<Vec<String>, Failure> {
    let (device, testbed) = own_files(library, request, system)?;
    let in_files = system.numbers.values().filter(|number| number.provenance != Provenance::Set);
    let files: BTreeSet<&String> = in_files.map(|number| &number.file).collect();
    let beside = files.into_iter().filter(|file| **file != device && **file != testbed);
    let beside = beside.map(|file| beside_name(&request.name, file, 1));
    Ok(std::iter::once(format!("{}.toml", request.name)).chain(beside).collect())
}

/// What the copy of a base's file beside the card is called; `which` counts those of one name.
fn beside_name(card: &str, file: &str, which: usize) -> String {
    let which = if which > 1 { format!("-{which}") } else { String::new() };
    format!("{card}-{}{which}.toml", stem(file))
}

/// The files of the card that was learnt: the device with its testbed, and a copy of every other file that a number was fitted in.
pub(super) fn card(
    library: &Library,
    request: &CalibrateRequest,
    (system, plain): (&System, &System),
    (numbers, learnt): (&[ChangedNumber], &Calibration),
    (logs, mtu, header): (&[&CalibratedLogAnswer], Option<Bytes>, Option<PacketHeader>),
) -> Result<(Vec<CardFile>, Vec<BaseErrors>), Failure> {
    let mut hasher = crc32fast::Hasher::new();
    logs.iter().for_each(|log| hasher.update(log.crc32.as_bytes()));
    let stamp = format!("{:08x}", hasher.finalize());
    let named: Vec<String> = logs.iter().take(2).map(|log| file_name(&log.file).to_string()).collect();
    let more = logs.len().saturating_sub(named.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let source_words = format!("offpath calibrate: {}{more}, crc32 {stamp}", named.join(", "));

    let (device_file, testbed_file) = own_files(library, request, system)?;
    let mut by_file: BTreeMap<&str, Vec<&ChangedNumber>> = BTreeMap::new();
    numbers.iter().for_each(|one| by_file.entry(&one.file).or_default().push(one));
    // A file that does not ship is named by where it lies, and the card may lie elsewhere.
    let not_shipped = system.numbers.values().filter(|number| {
        number.provenance != Provenance::Set
            && !number.file.starts_with("profiles/")
            && number.file.ends_with(".toml")
    });
    not_shipped.for_each(|number| {
        by_file.entry(&number.file).or_default();
    });
    let none = Vec::new();

    let is_same_card = is_of_same_machines(library, request, system)?;
    let drafted = match is_same_card {
        true => library.draft_of_same(&request.name, &request.base)?,
        false => library.draft(&request.name, Some(&request.base))?,
    };
    let mut device = parsed(&device_file, &drafted)?;
    let of_device: Vec<&ChangedNumber> = by_file.get(device_file.as_str()).unwrap_or(&none).clone();
    let is_of_testbed =
        |one: &&ChangedNumber| device.get(one.key.split('.').next().unwrap_or_default()).is_none();
    let (_, own): (Vec<&ChangedNumber>, Vec<&ChangedNumber>) = of_device.into_iter().partition(is_of_testbed);
    put(&mut device, &device_file, &own, &source_words)?;
    if let Some(header) = device.get_mut("device").and_then(|item| item.as_table_mut()) {
        header.remove("testbed");
        let mut description = format!("learnt from logs by offpath calibrate, begun from {}", request.base);
        if !learnt.is_described {
            let percent = |error: &ErrorSummary| format!("{:.1}%", 100.0 * error.median);
            let (own, roofline) = (percent(&learnt.predicted), percent(&learnt.roofline));
            description = format!(
                "NOT DESCRIBED BY THE MODEL, plan nothing with it: held-out points are off by {own} in the median, and by {roofline} with a \
                 roofline; {description}"
            );
        }
        header.insert("description", toml_edit::value(description));
    }

    // The testbed stands in the device's file, so that one name means the whole.
    let mut bed = parsed(&testbed_file, &source(library, &testbed_file)?)?;
    let of_base = match is_same_card {
        true => errors_of_base(&bed, plain, numbers, learnt),
        false => Vec::new(),
    };
    let keep: Vec<String> = bed
        .iter()
        .filter(|(name, item)| {
            let kind = item.get("kind").and_then(|kind| kind.as_str());
            *name == "testbed" || matches!(kind, Some("machine" | "network"))
        })
        .map(|(name, _)| name.to_string())
        .collect();
    let drop: Vec<String> =
        bed.iter().map(|(name, _)| name.to_string()).filter(|name| !keep.contains(name)).collect();
    drop.iter().for_each(|name| {
        bed.remove(name);
    });
    if let Some(header) = bed.get_mut("testbed").and_then(|item| item.as_table_mut()) {
        header.insert("name", toml_edit::value(request.name.as_str()));
        header.remove("pair");
    }
    let of_bed: Vec<&ChangedNumber> = by_file.get(testbed_file.as_str()).unwrap_or(&none).clone();
    let of_bed: Vec<&ChangedNumber> = of_bed
        .into_iter()
        .filter(|one| bed.get(one.key.split('.').next().unwrap_or_default()).is_some())
        .collect();
    put(&mut bed, &testbed_file, &of_bed, &source_words)?;
    if let Some(mtu) = mtu {
        state(&mut bed, "mtu", mtu, None, format!("the logs state it; {source_words}"));
    }
    if let Some(PacketHeader { size, at_most, what }) = header {
        let source = format!("the logs state the link layer: {what}; {source_words}");
        state(&mut bed, "packet_header", size, Some(at_most), source);
    }

    // Hosts and other machines' devices with fitted numbers are files beside it.
    let mut beside = Vec::new();
    for (file, own) in by_file.iter().filter(|(file, _)| **file != device_file && **file != testbed_file) {
        let stem = stem(file);
        // Two hosts may have one name in two folders.
        let is_free = |name: &String| beside.iter().all(|one: &CardFile| one.name != *name);
        let mut names = (1..).map(|which| beside_name(&request.name, file, which));
        let copy = names.find(is_free).expect("there are more names than files");
        let mut document = parsed(file, &source(library, file)?)?;
        put(&mut document, file, own, &source_words)?;
        for machine in keep.iter().filter(|name| *name != "testbed") {
            for word in ["host", "device"] {
                let Some(item) = bed.get_mut(machine).and_then(|table| table.get_mut(word)) else { continue };
                let is_meant =
                    item.as_str().is_some_and(|name| name == stem || Path::new(file).ends_with(name));
                if is_meant {
                    *item = toml_edit::value(copy.as_str());
                }
            }
        }
        beside.push(CardFile { name: copy, text: document.to_string() });
    }
    let own = learnt.learnt_errors.iter().map(|one| of_errors(&one.errors, &source_words));
    let staying = of_base.iter().filter(|one| one.gone.is_none()).map(|one| one.table.clone());
    let errors = as_text(own.chain(staying).collect());
    let text = format!("{device}\n# Where it stands.\n{bed}{errors}");
    let mut files = vec![CardFile { name: format!("{}.toml", request.name), text }];
    files.extend(beside);
    check_loads(library, &files)?;
    Ok((files, of_base))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A card that loading refuses is never written, and neither the logs nor the base are blamed.
    #[test]
    fn a_card_that_does_not_load_is_a_fault_of_offpath() {
        let library = Library::builtin();
        let drafted = library.draft("mine", Some("bluefield3")).expect("a file");
        let card = |text: &str| {
            let bed = library.source(Category::Testbed, "bluefield3-pair").expect("it ships");
            let text = text.replace("testbed = \"bluefield3-pair\"", "");
            vec![CardFile { name: "mine.toml".to_string(), text: format!("{text}\n{bed}") }]
        };
        check_loads(&library, &card(&drafted)).expect("the draft loads");
        let mut broken = parsed("mine.toml", &drafted).expect("it is TOML");
        let number = ChangedNumber {
            file: "mine.toml".to_string(),
            key: "soc.read_latency".to_string(),
            value: "200 ns".parse::<offpath_quantity::Time>().map(Quantity::Time).expect("a time"),
            low: "0 ns".parse::<offpath_quantity::Time>().map(Quantity::Time).expect("a time"),
            high: "1.822 s".parse::<offpath_quantity::Time>().map(Quantity::Time).expect("a time"),
            doubt: None,
            confirmed: None,
        };
        put(&mut broken, "mine.toml", &[&number], "a test").expect("the card has it");
        let refused = check_loads(&library, &card(&broken.to_string())).expect_err("it is beyond a second");
        let said = format!("{refused:?}");
        for words in ["offpath itself refuses the card", "soc.read_latency", "1.822 s", "writes nothing"] {
            assert!(said.contains(words), "{words}: {said}");
        }
    }
}
