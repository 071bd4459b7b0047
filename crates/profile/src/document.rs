//! One file: from text to tables whose keys, values and origins have been checked.

use crate::error::{Place, ProfileError, Source, list, nearest, suggestion};
use crate::renamed;
use crate::schema::{Key, Kind, Word};
use crate::{Category, LEARNT_FIGURES, LearntErrors, Number, Problem, Provenance};
use offpath_quantity::{Dimension, Quantity};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

impl Category {
    /// The name of the header table.
    pub(crate) fn table(self) -> &'static str {
        match self {
            Category::Device => "device",
            Category::Host => "host_profile",
            Category::Testbed => "testbed",
            Category::Overlay => "overlay",
        }
    }
    fn find(name: &str) -> Option<Category> {
        Category::ALL.into_iter().find(|kind| kind.table() == name)
    }
    /// The keys of the header.
    pub(crate) fn words(self) -> &'static [Word] {
        const DESCRIPTION: Word =
            Word::one("description", "\"one line for lists\"", "What it is, in one line for lists.");
        const NAME: Word = Word::one("name", "\"my-name\"", "The name that other files and commands use.");
        match self {
            Category::Device => {
                const {
                    &[
                        Word::one("name", "\"my-card\"", "The name that designs and commands use."),
                        DESCRIPTION,
                        Word::one(
                            "mode",
                            "\"separated-host\"",
                            "`separated-host`, `embedded-cpu` or `nic`, where nothing else is asked for.",
                        ),
                        Word::optional(
                            "testbed",
                            "\"rack\"",
                            "Where it stands where nothing else is asked for.",
                        ),
                        Word::one(
                            "host_at",
                            "\"switch\"",
                            "The node that the host's PCIe slot joins: `nic` or a switch.",
                        ),
                        Word::several(
                            "variants",
                            "[\"overlay-a\", \"overlay-b\"]",
                            "Overlays of mechanisms that the evidence leaves open; a plan says what each would give.",
                        ),
                    ]
                }
            }
            Category::Overlay => {
                const {
                    &[
                        NAME,
                        DESCRIPTION,
                        Word::optional(
                            "suggested_by",
                            "\"a paper's section\"",
                            "Who suggests it to makers of cards; `offpath whatif` tries every overlay that says so.",
                        ),
                    ]
                }
            }
            Category::Host => const { &[NAME, DESCRIPTION] },
            Category::Testbed => {
                const {
                    &[
                        NAME,
                        DESCRIPTION,
                        Word::optional(
                            "pair",
                            "\"rack-pair\"",
                            "The testbed of two machines with the card, between which its benchmarks are taken to run.",
                        ),
                    ]
                }
            }
        }
    }
    /// The kinds of component tables that belong to it.
    pub(crate) fn holds(self, kind: Kind) -> bool {
        match self {
            Category::Device => !matches!(kind, Kind::Machine | Kind::Network | Kind::Errors),
            Category::Host => {
                !matches!(kind, Kind::Machine | Kind::Network | Kind::Errors | Kind::Nic | Kind::Port)
            }
            // An engine of a testbed is fitted into its server, as a drive is.
            Category::Testbed => {
                matches!(kind, Kind::Machine | Kind::Network | Kind::Engine | Kind::Errors)
            }
            Category::Overlay => false,
        }
    }
}

/// One or more names that a key holds, and where.
#[derive(Clone, Debug)]
pub(crate) struct Words {
    pub values: Vec<String>,
    pub span: Range<usize>,
}

impl Words {
    pub(crate) fn first(&self) -> &str {
        self.values.first().map_or("", String::as_str)
    }
}

/// A component as one file describes it.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub kind: Kind,
    pub name: String,
    pub span: Range<usize>,
    pub source: Arc<Source>,
    pub words: BTreeMap<&'static str, Words>,
    pub numbers: BTreeMap<&'static str, Number>,
    /// Where the value of each number stands.
    pub spans: BTreeMap<&'static str, Range<usize>>,
}

impl Table {
    pub(crate) fn place(&self) -> Place<'_> {
        (&self.source, self.span.clone())
    }
    /// The names under `key`; the document was refused where a key of the kind is missing.
    pub(crate) fn words(&self, key: &str) -> Words {
        self.words.get(key).cloned().unwrap_or(Words { values: Vec::new(), span: self.span.clone() })
    }
    pub(crate) fn words_place(&self, key: &str) -> Place<'_> {
        (&self.source, self.words(key).span)
    }
    /// Where the value of a number stands.
    pub(crate) fn number_place(&self, key: &str) -> Place<'_> {
        (&self.source, self.spans.get(key).unwrap_or(&self.span).clone())
    }
}

/// What to do about a control character.
pub const CONTROL_CHARACTER_HELP: &str =
    "leave it out: names and words are shown on terminals, which would act on it";

/// What is wrong with it.
pub fn control_character_reason(character: char) -> String {
    format!("these words hold the control character U+{:04X}", u32::from(character))
}

/// The first control character or mark of direction in the words of a TOML file, keys included, with its place; tabs
/// and line ends are none, and a carriage return is one where no line ends after it. What is printed must not move a reader's cursor or repaint what stands above it.
///
/// ```
/// # use toml::de::DeTable;
/// let root = DeTable::parse(r#"name = "a\u001b[2Jb""#).unwrap();
/// let (character, at) = offpath_profile::control_character(root.get_ref()).unwrap();
/// assert_eq!((character, at), ('\u{1b}', 7..20));
/// let back = DeTable::parse(r#"name = "a\rb""#).unwrap();
/// assert!(offpath_profile::control_character(back.get_ref()).is_some(), "it would write over the line");
/// let turned = DeTable::parse("name = 'a\u{202e}b'").unwrap();
/// assert!(offpath_profile::control_character(turned.get_ref()).is_some(), "it would turn the line round");
/// ```
pub fn control_character(table: &DeTable<'_>) -> Option<(char, Range<usize>)> {
    fn within(text: &str) -> Option<char> {
        // Marks of direction show letters in another order than they stand in.
        let turns = |one: &char| matches!(one, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        let is_control = |one: &char| one.is_control() && !matches!(one, '\n' | '\t') || turns(one);
        text.replace("\r\n", "\n").chars().find(is_control)
    }
    fn of(value: &toml::Spanned<DeValue<'_>>) -> Option<(char, Range<usize>)> {
        match value.get_ref() {
            DeValue::String(text) => within(text).map(|character| (character, value.span())),
            DeValue::Array(values) => values.iter().find_map(of),
            DeValue::Table(table) => control_character(table),
            _ => None,
        }
    }
    table
        .iter()
        .find_map(|(key, value)| within(key.get_ref()).map(|found| (found, key.span())).or_else(|| of(value)))
}

/// A header table.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub kind: Category,
    pub span: Range<usize>,
    pub words: BTreeMap<&'static str, Words>,
}

impl Header {
    pub(crate) fn word(&self, key: &str) -> Option<&str> {
        self.words.get(key).map(Words::first)
    }
    /// The names under `key`; none where the header has no such key.
    pub(crate) fn names(&self, key: &str) -> &[String] {
        self.words.get(key).map_or(&[], |words| &words.values)
    }
    pub(crate) fn span_of(&self, key: &str) -> Range<usize> {
        self.words.get(key).map_or_else(|| self.span.clone(), |words| words.span.clone())
    }
}

/// A value without an origin of its own, as overlays and settings have.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Bare {
    Text(String),
    Flag(bool),
}

/// One line of an overlay.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub pattern: String,
    pub pattern_span: Range<usize>,
    pub value: Changed,
    pub value_span: Range<usize>,
}

/// What an overlay gives a number.
#[derive(Clone, Debug)]
pub(crate) enum Changed {
    /// A value, with the interval that it is known within where one is stated.
    Value(Bare, Option<(Bare, Bare)>),
    /// So many times a number of the system: that of the name, or the one changed; with the least and the most times, where
    /// they are stated.
    Times { times: f64, ends: Option<(f64, f64)>, of: Option<String> },
}

/// A checked file.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub source: Arc<Source>,
    pub headers: Vec<Header>,
    pub tables: Vec<Table>,
    pub changes: Vec<Change>,
}

impl Document {
    pub(crate) fn header(&self, kind: Category) -> Option<&Header> {
        self.headers.iter().find(|header| header.kind == kind)
    }

    /// The header of the kind, or a refusal that says what the file is instead.
    pub(crate) fn require(&self, kind: Category) -> Result<&Header, ProfileError> {
        self.header(kind).ok_or_else(|| {
            let has = self.headers.iter().map(|header| header.kind.table());
            ProfileError::new(
                Problem::Missing {
                    what: format!("the table `[{}]`", kind.table()),
                    place: format!("`{}`", self.source.name),
                },
                format!("add `[{}]` with `name` and `description`; the file has {}", kind.table(), list(has)),
                Some((&self.source, 0..0)),
            )
        })
    }

    /// Reads and checks a file's text.
    pub(crate) fn parse(source: Arc<Source>) -> Result<Document, ProfileError> {
        let root = DeTable::parse(&source.text).map_err(|error| {
            ProfileError::new(
                Problem::Syntax { reason: error.message().trim().replace('\n', ", ") },
                "write each table as `[name]` and each key as `key = value`, every key once",
                Some((&source, error.span().unwrap_or(0..0))),
            )
        })?;
        if let Some((character, at)) = control_character(root.get_ref()) {
            return Err(ProfileError::new(
                Problem::Structure { reason: control_character_reason(character) },
                CONTROL_CHARACTER_HELP,
                Some((&source, at)),
            ));
        }
        let mut document =
            Document { source: source.clone(), headers: Vec::new(), tables: Vec::new(), changes: Vec::new() };
        let mut mistakes = Mistakes::default();
        let mut entries: Vec<_> = root.get_ref().iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        if let Some((design, _)) = entries.iter().find(|(key, _)| key.get_ref() == "design") {
            return Err(ProfileError::new(
                Problem::Structure { reason: format!("`{}` is a design, not a profile", source.name) },
                format!(
                    "`offpath plan {}` plans it; profiles describe devices, hosts, testbeds and overlays",
                    source.name
                ),
                Some((&source, design.span())),
            ));
        }
        let mut kinds = entries.iter().filter_map(|(key, _)| Category::find(key.get_ref())).peekable();
        let is_overlay_alone = kinds.peek().is_some() && kinds.all(|kind| kind == Category::Overlay);
        for (key, value) in &entries {
            let reader = Reader { source: &source, name: key.get_ref(), span: key.span() };
            let Some(table) = value.get_ref().as_table() else {
                mistakes.add(reader.refuse(
                    Problem::Unknown {
                        what: "key".into(),
                        name: key.get_ref().to_string(),
                        place: "outside a table".into(),
                    },
                    "put it below a table's name such as `[nic]`",
                    key.span(),
                ));
                continue;
            };
            if let Some(kind) = Category::find(key.get_ref()) {
                document.headers.extend(mistakes.keep(reader.header(kind, table)));
            } else if key.get_ref() == "set" {
                document.changes = mistakes.keep(reader.changes(table)).unwrap_or_default();
            } else if is_overlay_alone {
                let named = key.get_ref();
                let first = table.iter().next().map_or("NUMBER", |(key, _)| key.get_ref());
                mistakes.add(reader.refuse(
                    Problem::Structure { reason: format!("`[{named}]` is a component, and an overlay has none") },
                    format!("an overlay changes numbers by their names: write `\"{named}.{first}\" = ...` below `[set]`"),
                    key.span(),
                ));
            } else {
                document.tables.extend(mistakes.keep(reader.component(table)));
            }
        }
        mistakes.check()?;
        document.check_headers()?;
        document.check_guesses()?;
        document.check_errors()?;
        Ok(document)
    }

    /// A guess says how far off it may be: every assumed or carried-over number has `low` and `high`. All
    /// that lack them are named at once. A flag has no interval.
    fn check_guesses(&self) -> Result<(), ProfileError> {
        let lacking: Vec<(String, &Table, &'static str)> = self
            .tables
            .iter()
            .flat_map(|table| table.numbers.iter().map(move |(key, number)| (table, *key, number)))
            .filter(|(table, key, number)| {
                let flag = table.kind.keys().any(|entry| entry.name == *key && entry.flag);
                number.provenance.is_guess() && !flag && (number.low.is_none() || number.high.is_none())
            })
            .map(|(table, key, _)| (format!("{}.{key}", table.name), table, key))
            .collect();
        let Some((_, table, key)) = lacking.first() else { return Ok(()) };
        let names: Vec<&str> = lacking.iter().map(|(name, _, _)| name.as_str()).collect();
        let span = table.spans.get(key).unwrap_or(&table.span).clone();
        Err(ProfileError::new(
            Problem::Missing { what: "`low` and `high`".into(), place: list(names) },
            "an assumed or carried-over number says how far off it may be: add `low = ...` and `high = ...` to \
             each, wide enough that you would bet on it nine times in ten",
            Some((&self.source, span)),
        ))
    }

    /// What predictions were wrong by was measured of one device in one testbed, of the same runs once, and no smaller share
    /// of the errors reaches farther than a greater one.
    fn check_errors(&self) -> Result<(), ProfileError> {
        let refuse =
            |problem, help: String, span| Err(ProfileError::new(problem, help, Some((&self.source, span))));
        let mut seen: Vec<(LearntErrors, &str)> = Vec::new();
        for table in self.tables.iter().filter(|table| table.kind == Kind::Errors) {
            let own = LearntErrors::of_words(table);
            let Words { span, .. } = table.words("figure");
            let figure = own.figure.clone();
            if !LEARNT_FIGURES.contains(&figure.as_str()) {
                let place = format!("for `figure` of `[{}]`", table.name);
                let help = suggestion(&figure, LEARNT_FIGURES);
                return refuse(Problem::Unknown { what: "figure".into(), name: figure, place }, help, span);
            }
            if let Some((_, other)) = seen.iter().find(|(other, _)| other.is_beside(&own)) {
                let reason = format!(
                    "`[{other}]` and `[{}]` both hold errors of {figure} of the same runs",
                    table.name
                );
                let help = "keep the one that was measured last".to_string();
                return refuse(Problem::Structure { reason }, help, span);
            }
            seen.push((own, &table.name));
            if self.header(Category::Device).is_none() {
                let reason =
                    format!("`[{}]` is of no device: the file describes a testbed alone", table.name);
                let help = "move it to the file that describes the device in its testbed, or leave it out";
                return refuse(Problem::Structure { reason }, help.into(), table.span.clone());
            }
            let span = |key: &str| table.spans.get(key).unwrap_or(&table.span).clone();
            let guess =
                table.numbers.iter().find(|(_, number)| number.provenance != Provenance::MeasuredHere);
            if let Some((key, number)) = guess {
                let reason =
                    format!("`{}.{key}` is {}, and errors are measured", table.name, number.provenance);
                let help = "write `provenance = \"measured-here\"` where they were measured of this device in this testbed, or \
                            leave the table out"
                    .to_string();
                return refuse(Problem::Structure { reason }, help, span(key));
            }
            let shares = table.kind.keys().filter(|key| key.dimension == Dimension::Ratio);
            let shares: Vec<_> =
                shares.filter_map(|key| Some((key.name, table.numbers.get(key.name)?.value))).collect();
            for pair in shares.windows(2) {
                let [(lesser, below), (key, above)] = [pair[0], pair[1]];
                if above.base() < below.base() {
                    let (name, value) = (format!("{}.{key}", table.name), above.to_string());
                    let bound = format!("at least `{lesser}`, which is {below}");
                    let help =
                        "a greater share of the errors is within no less: correct one of them".to_string();
                    return refuse(Problem::OutOfRange { name, value, bound }, help, span(key));
                }
            }
        }
        Ok(())
    }

    /// Marks what was measured or fitted for another profile and taken over into this one.
    ///
    /// A copy of a shipped profile under another name still cites the rows and sources of the original,
    /// which say nothing about the copy. Its interval is widened by half, since none was stated for it. In a
    /// user's own file (`is_own_file`) the same holds under the shipped name where the number was changed.
    pub(crate) fn carry_over(&mut self, shipped: &Shipped, is_own_file: bool) {
        let own: Vec<String> =
            self.headers.iter().filter_map(|header| header.word("name")).map(str::to_string).collect();
        for table in &mut self.tables {
            for (key, number) in &mut table.numbers {
                let Some(entry) = table.kind.keys().find(|entry| entry.name == *key) else { continue };
                let is_edited = is_own_file && shipped.is_edited(&own, &table.name, key, number);
                let is_of_others = match number.provenance {
                    Provenance::Measured | Provenance::Fitted => shipped.of_others(&own, key, number),
                    Provenance::Datasheet => !entry.of_standard && shipped.of_others(&own, key, number),
                    _ => continue,
                };
                if is_edited || is_of_others {
                    carry(number, table.kind, entry, shipped);
                }
            }
        }
    }

    /// Each table must belong to a header, and headers that would share tables cannot share a file.
    fn check_headers(&self) -> Result<(), ProfileError> {
        let refuse =
            |problem, help: String, span| Err(ProfileError::new(problem, help, Some((&self.source, span))));
        if self.headers.is_empty() {
            return refuse(
                Problem::Missing { what: "a header".into(), place: format!("`{}`", self.source.name) },
                "say what the file is: add `[device]`, `[host_profile]`, `[testbed]` or `[overlay]`, with `name` \
                 and `description`"
                    .into(),
                0..0,
            );
        }
        if let (Some(_), Some(host)) = (self.header(Category::Device), self.header(Category::Host)) {
            return refuse(
                Problem::Structure { reason: "one file holds a device and a host".into() },
                "their endpoints and links could not be told apart: put `[host_profile]` and its tables into a file \
                 of their own and name it in the machine's `host`"
                    .into(),
                host.span.clone(),
            );
        }
        if let (Some(overlay), true) = (self.header(Category::Overlay), self.changes.is_empty()) {
            return refuse(
                Problem::Missing { what: "`[set]`".into(), place: "the overlay".into() },
                "add `[set]` with lines such as `\"*.encoding\" = 1`".into(),
                overlay.span.clone(),
            );
        }
        if !self.changes.is_empty() && self.header(Category::Overlay).is_none() {
            return refuse(
                Problem::Structure { reason: "`[set]` belongs to an overlay".into() },
                "add `[overlay]` with `name` and `description`, or move it to a file of its own".into(),
                self.changes[0].pattern_span.clone(),
            );
        }
        for table in &self.tables {
            if !self.headers.iter().any(|header| header.kind.holds(table.kind)) {
                let has = list(self.headers.iter().map(|header| header.kind.table()));
                return refuse(
                    Problem::Structure {
                        reason: format!(
                            "`[{}]` is {}, which does not belong here",
                            table.name,
                            table.kind.called()
                        ),
                    },
                    format!(
                        "the file is {has}: devices and hosts hold components, testbeds hold machines, the network and \
                         learnt errors"
                    ),
                    table.span.clone(),
                );
            }
        }
        Ok(())
    }
}

/// Makes what is known of one device a guess about another, its interval wider by half at each end. A zero has no half: it
/// may be as much as any shipped profile holds possible of that number.
pub(crate) fn carry(number: &mut Number, kind: Kind, entry: &Key, shipped: &Shipped) {
    const WIDER: f64 = 1.5;
    number.provenance = Provenance::CarriedOver;
    if entry.flag {
        return;
    }
    let whole = |base: f64| match entry.dimension {
        Dimension::Count => base.round(),
        _ => entry.range.nearest(base),
    };
    let end = |known: Option<Quantity>, factor: f64| {
        let base = known.unwrap_or(number.value).base() * factor;
        Quantity::from_base(whole(base).clamp(entry.range.least, entry.range.most), entry.dimension)
    };
    (number.low, number.high) = (end(number.low, 1.0 / WIDER), end(number.high, WIDER));
    if number.high.is_some_and(|high| high.base() == 0.0) {
        let most = shipped.greatest.get(&(kind, entry.name)).copied().unwrap_or(0.0);
        number.high = Quantity::from_base(most, entry.dimension);
    }
}

/// Which profile each evidence row and each source is about, by the profiles that ship.
#[derive(Debug, Default)]
pub(crate) struct Shipped {
    rows: BTreeMap<String, BTreeSet<String>>,
    /// Each number with its ends, by the profile's name and the number's.
    values: BTreeMap<(String, String), [Option<Quantity>; 3]>,
    sources: BTreeMap<(String, String), BTreeSet<String>>,
    /// The most that any of them holds possible of a number, in base units.
    greatest: BTreeMap<(Kind, &'static str), f64>,
}

impl Shipped {
    /// Adds what one shipped document cites.
    pub(crate) fn add(&mut self, document: &Document) {
        let names = || document.headers.iter().filter_map(|header| header.word("name")).map(str::to_string);
        for table in &document.tables {
            for (key, number) in &table.numbers {
                for row in &number.rows {
                    self.rows.entry(row.clone()).or_default().extend(names());
                }
                if let Some(entry) = table.kind.keys().find(|entry| entry.name == *key) {
                    let most = self.greatest.entry((table.kind, entry.name)).or_default();
                    *most = most.max(number.high.unwrap_or(number.value).base());
                }
                let full = format!("{}.{key}", table.name);
                self.values.extend(names().map(|name| ((name, full.clone()), said(number))));
                // By the key alone: who calls the card's processor otherwise measured it no better.
                let at = (key.to_string(), number.source.clone());
                self.sources.entry(at).or_default().extend(names());
            }
        }
    }

    /// Whether a number of a profile with a shipped one's name cites what that cites, and is another one: what
    /// the citation says is not what the number is.
    fn is_edited(&self, own: &[String], table: &str, key: &str, number: &Number) -> bool {
        let full = format!("{table}.{key}");
        let cites = |name: &String| {
            let about = |names: Option<&BTreeSet<String>>| names.is_some_and(|names| names.contains(name));
            number.rows.iter().any(|row| about(self.rows.get(row)) || self.is_uncited(row))
                || about(self.sources.get(&(key.to_string(), number.source.clone())))
        };
        // A component that the shipped profile lacks says nothing that its citations say.
        own.iter().any(|name| {
            let shipped = self.values.get(&(name.clone(), full.clone()));
            shipped.is_none_or(|shipped| *shipped != said(number)) && cites(name)
        })
    }

    /// Whether all that a number cites is about shipped profiles of other names than `own`.
    fn of_others(&self, own: &[String], key: &str, number: &Number) -> bool {
        let others = |about: Option<&BTreeSet<String>>| {
            about.is_some_and(|names| own.iter().all(|own| !names.contains(own)))
        };
        if number.rows.is_empty() {
            return others(self.sources.get(&(key.to_string(), number.source.clone())));
        }
        number.rows.iter().all(|row| others(self.rows.get(row)) || self.is_uncited(row))
    }

    /// Whether a row bears a published row's name, as `W001` does, and stands behind no shipped number: it was
    /// published about other devices than a user's own, so it is evidence for none of theirs.
    fn is_uncited(&self, row: &str) -> bool {
        let series = |row: &str| {
            let at = row.find(|letter: char| letter.is_ascii_digit())?;
            let (letters, digits) = row.split_at(at);
            let is_name = !letters.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
            is_name.then(|| letters.to_string())
        };
        !self.rows.contains_key(row)
            && series(row).is_some_and(|own| {
                self.rows.keys().any(|cited| series(cited).is_some_and(|cited| cited == own))
            })
    }
}

/// What a number says: its value and the ends of its interval.
fn said(number: &Number) -> [Option<Quantity>; 3] {
    [Some(number.value), number.low, number.high]
}

/// What is wrong with a file, collected so that its author learns of all of it at once.
#[derive(Default)]
struct Mistakes(Vec<ProfileError>);

impl Mistakes {
    fn add(&mut self, mistake: ProfileError) {
        self.0.push(mistake);
    }

    /// What was read, where it is in order.
    fn keep<T>(&mut self, read: Result<T, ProfileError>) -> Option<T> {
        read.map_err(|mistake| self.add(mistake)).ok()
    }

    fn check(self) -> Result<(), ProfileError> {
        ProfileError::several(self.0).map_or(Ok(()), Err)
    }
}

/// Reads one table; carries what its messages need.
struct Reader<'a> {
    source: &'a Arc<Source>,
    name: &'a str,
    span: Range<usize>,
}

/// Which keys a table holds, whatever their values are.
#[derive(Default)]
struct Given {
    keys: Vec<&'static str>,
    /// What its unknown keys most likely meant.
    misspelt: Vec<&'static str>,
}

impl Given {
    /// Whether a key is there. One that is only misspelt is a mistake of its own, not a missing one.
    fn has(&self, key: &str) -> bool {
        self.keys.contains(&key) || self.misspelt.contains(&key)
    }
}

type Entry<'a, 'i> = (&'a Spanned<DeString<'i>>, &'a Spanned<DeValue<'i>>);

fn in_order<'a, 'i>(table: &'a DeTable<'i>) -> Vec<Entry<'a, 'i>> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

impl Reader<'_> {
    fn refuse(&self, problem: Problem, help: impl Into<String>, span: Range<usize>) -> ProfileError {
        ProfileError::new(problem, help, Some((self.source, span)))
    }

    /// The keys that the table lacks, each with an example of its value; one mistake for all of them.
    fn missing(&self, keys: &[(&str, String)]) -> Option<ProfileError> {
        let what = list(keys.iter().map(|(key, _)| *key));
        let help = match keys {
            [] => return None,
            [(key, example)] => format!("add `{key} = {example}`"),
            several => {
                let lines: Vec<String> =
                    several.iter().map(|(key, example)| format!("  {key} = {example}")).collect();
                format!("add to `[{}]`\n{}", self.name, lines.join("\n"))
            }
        };
        let place = format!("`[{}]`", self.name);
        Some(self.refuse(Problem::Missing { what, place }, help, self.span.clone()))
    }

    fn unknown_key(
        &self,
        key: &Spanned<DeString<'_>>,
        known: &[&str],
        renamed: Option<&str>,
    ) -> ProfileError {
        self.refuse(
            Problem::Unknown {
                what: "key".into(),
                name: key.get_ref().to_string(),
                place: format!("in `[{}]`", self.name),
            },
            match renamed {
                Some(new) => format!("it is called `{new}` now"),
                None => suggestion(key.get_ref(), known.iter().copied()),
            },
            key.span(),
        )
    }

    fn malformed(
        &self,
        name: &str,
        reason: String,
        help: impl Into<String>,
        span: Range<usize>,
    ) -> ProfileError {
        self.refuse(Problem::Malformed { name: name.to_string(), reason }, help, span)
    }

    fn text(&self, key: &str, example: &str, value: &Spanned<DeValue<'_>>) -> Result<Words, ProfileError> {
        match value.get_ref().as_str() {
            Some(text) if !text.trim().is_empty() => {
                Ok(Words { values: vec![text.to_string()], span: value.span() })
            }
            _ => Err(self.malformed(
                &format!("{}.{key}", self.name),
                format!("a text is needed, not {}", describe(value.get_ref())),
                format!("write `{key} = {example}`"),
                value.span(),
            )),
        }
    }

    fn texts(&self, key: &str, example: &str, value: &Spanned<DeValue<'_>>) -> Result<Words, ProfileError> {
        let texts: Option<Vec<String>> = value.get_ref().as_array().and_then(|array| {
            array
                .iter()
                .map(|item| item.get_ref().as_str().filter(|text| !text.is_empty()).map(str::to_string))
                .collect()
        });
        match texts {
            Some(values) => Ok(Words { values, span: value.span() }),
            None => Err(self.malformed(
                &format!("{}.{key}", self.name),
                format!("a list of texts is needed, not {}", describe(value.get_ref())),
                format!("write `{key} = {example}`"),
                value.span(),
            )),
        }
    }

    fn header(&self, kind: Category, table: &DeTable<'_>) -> Result<Header, ProfileError> {
        let (mut words, mut mistakes) = (BTreeMap::new(), Mistakes::default());
        let known: Vec<&str> = kind.words().iter().map(|word| word.name).collect();
        let mut given = Given::default();
        for (key, value) in in_order(table) {
            match kind.words().iter().find(|word| word.name == key.get_ref()) {
                Some(word) => {
                    given.keys.push(word.name);
                    let read = if word.list { Self::texts } else { Self::text };
                    let text = mistakes.keep(read(self, word.name, word.example, value));
                    words.extend(text.map(|text| (word.name, text)));
                }
                None => {
                    let renamed = renamed::word(key.get_ref());
                    given
                        .misspelt
                        .extend(renamed.map_or_else(|| nearest(key.get_ref(), &known), |new| vec![new]));
                    mistakes.add(self.unknown_key(key, &known, renamed));
                }
            }
        }
        let required = kind.words().iter().filter(|word| word.required && !given.has(word.name));
        let lacking: Vec<_> = required.map(|word| (word.name, word.example.to_string())).collect();
        mistakes.0.extend(self.missing(&lacking));
        mistakes.check()?;
        if let Some(name) = words.get("name").filter(|name| name.first() == "card") {
            return Err(self.refuse(
                Problem::BadName { what: format!("a {}", kind.name()), name: name.first().to_string() },
                "`card` stands for the device that is asked for, so a testbed could not tell them apart; choose \
                 another name",
                name.span.clone(),
            ));
        }
        Ok(Header { kind, span: self.span.clone(), words })
    }

    fn component(&self, table: &DeTable<'_>) -> Result<Table, ProfileError> {
        let kinds = || Kind::ALL.iter().map(|kind| kind.name());
        let Some((_, kind)) = table.iter().find(|(key, _)| key.get_ref() == "kind") else {
            let headers = ["device", "host_profile", "testbed", "overlay", "set"];
            let near = nearest(self.name, &headers);
            let near = near.first().map_or_else(String::new, |near| format!("; did you mean `[{near}]`?"));
            return Err(self.refuse(
                Problem::Missing { what: "`kind`".into(), place: format!("`[{}]`", self.name) },
                format!("add `kind = \"...\"` with one of {}{near}", list(kinds())),
                self.span.clone(),
            ));
        };
        let word = self.text("kind", "\"endpoint\"", kind)?;
        let Some(kind) = Kind::ALL.iter().copied().find(|kind| kind.name() == word.first()) else {
            return Err(self.refuse(
                Problem::Unknown {
                    what: "kind".into(),
                    name: word.first().to_string(),
                    place: format!("for `[{}]`", self.name),
                },
                match renamed::word(word.first()) {
                    Some(new) => format!("it is called `{new}` now"),
                    None => suggestion(word.first(), kinds()),
                },
                word.span,
            ));
        };
        self.check_name(kind)?;
        let (mut words, mut numbers, mut spans) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (mut given, mut mistakes) = (Given::default(), Mistakes::default());
        let mut blank = Vec::new();
        let known = kind.words().iter().map(|word| word.name);
        let known: Vec<&str> = known.chain(kind.keys().map(|entry| entry.name)).collect();
        for (key, value) in in_order(table) {
            if let Some(word) = kind.words().iter().find(|word| word.name == key.get_ref()) {
                let read = if word.list { Self::texts } else { Self::text };
                given.keys.push(word.name);
                let read = mistakes.keep(read(self, word.name, word.example, value));
                words.extend(read.map(|text| (word.name, text)));
            } else if let Some(entry) = kind.keys().find(|entry| entry.name == key.get_ref()) {
                given.keys.push(entry.name);
                if is_blank(value) {
                    blank.push(entry.name);
                    continue;
                }
                spans.insert(entry.name, value.span());
                numbers.extend(mistakes.keep(self.number(entry, value)).map(|number| (entry.name, number)));
            } else if key.get_ref() != "kind" {
                let renamed = renamed::key(kind, key.get_ref());
                given
                    .misspelt
                    .extend(renamed.map_or_else(|| nearest(key.get_ref(), &known), |new| vec![new]));
                mistakes.add(self.unknown_key(key, &known, renamed));
            }
        }
        let words_lacking = kind.words().iter().filter(|word| word.required && !given.has(word.name));
        let mut lacking: Vec<_> = words_lacking.map(|word| (word.name, word.example.to_string())).collect();
        let required = kind.keys().filter(|entry| entry.required && !given.has(entry.name));
        lacking.extend(required.map(|entry| (entry.name, guess(entry))));
        if let Some(mut missing) = self.missing(&lacking) {
            if let [(name, _)] = lacking[..]
                && let Some(entry) = kind.keys().find(|entry| entry.name == name)
            {
                let bounds = entry.bounds();
                let bounds = if entry.flag { bounds } else { format!("of dimension {bounds}") };
                missing.explain(&format!("it is {bounds}. {}", entry.documentation()));
            }
            mistakes.add(missing);
        }
        if !blank.is_empty() {
            mistakes.add(self.refuse(
                Problem::Missing {
                    what: format!("values for {}", list(blank)),
                    place: format!("`[{}]`", self.name),
                },
                "write what is known of this device, where that stands and how it is known; the comments of a file that \
                 `offpath new device` wrote say what each number is",
                self.span.clone(),
            ));
        }
        mistakes.check()?;
        Ok(Table {
            kind,
            name: self.name.to_string(),
            span: self.span.clone(),
            source: self.source.clone(),
            words,
            numbers,
            spans,
        })
    }

    fn check_name(&self, kind: Kind) -> Result<(), ProfileError> {
        let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let reason = if self.name.is_empty() || !self.name.chars().all(good) {
            "use letters, digits and `_` only: `-` separates the words of a path, `.` those of a number"
                .to_string()
        } else if self.name == "card" {
            "`card` stands for the device that is asked for; choose another name".to_string()
        } else if matches!(kind, Kind::Nic | Kind::Port) && self.name != "nic"
            || kind == Kind::Network && self.name != "network"
        {
            format!("there is one, and it is called `{}`", kind.name())
        } else if !matches!(kind, Kind::Nic | Kind::Port) && self.name == "nic"
            || kind != Kind::Network && self.name == "network"
        {
            format!("the name belongs to the table of kind `{}`; choose another", self.name)
        } else {
            return Ok(());
        };
        Err(self.refuse(
            Problem::BadName { what: kind.called(), name: self.name.to_string() },
            reason,
            self.span.clone(),
        ))
    }

    /// Reads `{ value, source, provenance, ... }`.
    fn number(&self, key: &Key, value: &Spanned<DeValue<'_>>) -> Result<Number, ProfileError> {
        let name = format!("{}.{}", self.name, key.name);
        let example = if key.flag { "true".to_string() } else { quoted(key.dimension) };
        let whole = guess(key);
        let Some(table) = value.get_ref().as_table() else {
            return Err(self.malformed(
                &name,
                format!("{} says nothing of where it comes from", describe(value.get_ref())),
                format!("write `{} = {whole}`", key.name),
                value.span(),
            ));
        };
        const KEYS: [&str; 7] = ["value", "low", "high", "source", "provenance", "rows", "note"];
        let inner = Reader { source: self.source, name: &name, span: value.span() };
        let (mut mistakes, mut misspelt) = (Mistakes::default(), Vec::new());
        for (key, _) in in_order(table).into_iter().filter(|(key, _)| !KEYS.contains(&key.get_ref().as_ref()))
        {
            misspelt.extend(nearest(key.get_ref(), &KEYS));
            mistakes.add(inner.unknown_key(key, &KEYS, None));
        }
        let find = |part: &str| table.iter().find(|(key, _)| key.get_ref() == part).map(|(_, value)| value);
        let lacks = |part: &str, help: String| {
            let what = format!("`{part}`");
            self.refuse(Problem::Missing { what, place: format!("`{name}`") }, help, value.span())
        };
        let quantity = |part: &str, value: &Spanned<DeValue<'_>>| {
            let bare = bare(value.get_ref()).ok_or_else(|| {
                let reason = format!("`{part}` cannot be {}", describe(value.get_ref()));
                self.malformed(&name, reason, format!("write `{part} = {example}`"), value.span())
            })?;
            read(key, &name, &bare).map_err(|(problem, help)| self.refuse(problem, help, value.span()))
        };
        let given =
            mistakes.keep(find("value").ok_or_else(|| lacks("value", format!("add `value = {example}`"))));
        let used = given.and_then(|given| mistakes.keep(quantity("value", given)));
        let end = |part: &str| find(part).filter(|end| !is_empty_text(end)).map(|end| quantity(part, end));
        let low = end("low").and_then(|low| mistakes.keep(low));
        let high = end("high").and_then(|high| mistakes.keep(high));
        if let (Some(given), Some(used)) = (given, used)
            && (low.is_some_and(|low| low.base() > used.base())
                || high.is_some_and(|high| high.base() < used.base()))
        {
            let bound = match (low, high) {
                (Some(low), Some(high)) => format!("from its low of {low} to its high of {high}"),
                (Some(low), None) => format!("at least its low of {low}"),
                (None, Some(high)) => format!("at most its high of {high}"),
                (None, None) => String::new(),
            };
            mistakes.add(self.refuse(
                Problem::OutOfRange { name: name.clone(), value: used.to_string(), bound },
                "`low` and `high` are the interval that the evidence leaves around `value`: correct one of them",
                given.span(),
            ));
        }
        let origin = find("source").ok_or_else(|| {
            lacks(
                "source",
                "say where the number stands: add `source = \"...\"`, a paper's section or a data sheet"
                    .into(),
            )
        });
        let origin = origin.and_then(|origin| inner.text("source", "\"data sheet, table 2\"", origin));
        let origin = mistakes.keep(origin);
        // `set` is for overlays and settings: a file's number comes from somewhere.
        let accepted = Provenance::ALL.into_iter().filter(|provenance| *provenance != Provenance::Set);
        let accepted: Vec<&str> = accepted.map(Provenance::name).collect();
        let words = list(accepted.iter().copied());
        let word = find("provenance").ok_or_else(|| {
            lacks(
                "provenance",
                format!("say how the number is known: add `provenance = \"...\"` with one of {words}"),
            )
        });
        let provenance = word.and_then(|word| {
            let text = inner.text("provenance", "\"assumed\"", word)?;
            let known = |text: &&str| accepted.contains(text);
            let known = Some(text.first()).filter(known).and_then(|text| text.parse::<Provenance>().ok());
            known.ok_or_else(|| {
                self.refuse(
                    Problem::Unknown {
                        what: "provenance".into(),
                        name: text.first().to_string(),
                        place: format!("for `{name}`"),
                    },
                    suggestion(text.first(), accepted.iter().copied()),
                    word.span(),
                )
            })
        });
        let provenance = mistakes.keep(provenance);
        let rows = find("rows").and_then(|rows| mistakes.keep(inner.texts("rows", "[\"W001\"]", rows)));
        let rows = rows.map_or_else(Vec::new, |rows| rows.values);
        if provenance == Some(Provenance::Fitted) && rows.is_empty() {
            mistakes.add(lacks(
                "rows",
                "a fitted number names the evidence rows that it follows from: add `rows = [\"W001\"]`; write \
                 `provenance = \"measured\"` where you measured it yourself, or `provenance = \"assumed\"`, with \
                 `low = ...` and `high = ...`"
                    .into(),
            ));
        }
        let note = find("note")
            .and_then(|note| mistakes.keep(inner.text("note", "\"what a reader should know\"", note)))
            .map_or_else(String::new, |note| note.first().to_string());
        // A part that is only misspelt is not missing as well.
        let meant = |one: &ProfileError| match one.problem() {
            Problem::Missing { what, .. } => misspelt.iter().any(|part| *what == format!("`{part}`")),
            _ => false,
        };
        mistakes.0.retain(|one| !meant(one));
        mistakes.check()?;
        let (value, origin, provenance) = (used.zip(origin).zip(provenance))
            .map(|((value, origin), known)| (value, origin, known))
            .expect("what is missing was refused above");
        Ok(Number {
            value,
            low,
            high,
            replaced: None,
            source: origin.first().to_string(),
            provenance,
            rows,
            note,
            file: self.source.name.clone(),
            key: format!("{}.{}", self.name, key.name),
            multiple_of: None,
        })
    }

    fn changes(&self, table: &DeTable<'_>) -> Result<Vec<Change>, ProfileError> {
        in_order(table)
            .into_iter()
            .map(|(key, value)| {
                Ok(Change {
                    pattern: key.get_ref().to_string(),
                    pattern_span: key.span(),
                    value: self.changed(key.get_ref(), value)?,
                    value_span: value.span(),
                })
            })
            .collect()
    }
}

impl Reader<'_> {
    fn changed(&self, name: &str, value: &Spanned<DeValue<'_>>) -> Result<Changed, ProfileError> {
        if let Some(plain) = bare(value.get_ref()) {
            return Ok(Changed::Value(plain, None));
        }
        let refuse = |reason: String| {
            let help = "write a plain value, as in `\"soc.pcie_mtu\" = \"512 B\"` with the name in quotes, one with its \
                        interval: `{ value = \"80 ns\", low = \"40 ns\", high = \"160 ns\" }`, or what the profile's own is \
                        multiplied by: `{ times = 1.5 }`, `{ times = 0.5, low = 0.25, high = 1, of = \"nic.inflight_slots\" }`";
            self.malformed(name, reason, help, value.span())
        };
        let DeValue::Table(table) = value.get_ref() else {
            let found = describe(value.get_ref());
            return Err(refuse(format!("expected a plain value or `{{ times = FACTOR }}`, found {found}")));
        };
        let is_value = table.contains_key("value");
        let known: &[&str] =
            if is_value { &["value", "low", "high"] } else { &["times", "low", "high", "of"] };
        if let Some(unknown) =
            table.keys().map(|key| key.get_ref()).find(|key| !known.contains(&key.as_ref()))
        {
            return Err(refuse(format!("a changed number has no `{unknown}`")));
        }
        if table.contains_key("low") != table.contains_key("high") {
            return Err(refuse("an interval has both `low` and `high`".into()));
        }
        if is_value {
            let part = |part: &str| {
                let given = table.get(part).map(|given| given.get_ref());
                given.map(|given| {
                    bare(given).ok_or_else(|| refuse(format!("`{part}` cannot be {}", describe(given))))
                })
            };
            let given = part("value").transpose()?.expect("it is there");
            let ends = part("low").transpose()?.zip(part("high").transpose()?);
            return Ok(Changed::Value(given, ends));
        }
        let factor = |part: &str| {
            let factor = table.get(part).map(|given| match given.get_ref() {
                DeValue::Integer(number) if number.radix() == 10 => number.as_str().parse::<f64>().ok(),
                DeValue::Float(number) => number.as_str().parse().ok(),
                _ => None,
            });
            let factor = factor.map(|factor| factor.filter(|factor| factor.is_finite() && *factor >= 0.0));
            factor
                .map(|factor| factor.ok_or_else(|| refuse(format!("`{part}` is not a number of at least 0"))))
        };
        let times = factor("times").transpose()?;
        let times = times.ok_or_else(|| refuse("`times` is not a number of at least 0".into()))?;
        let ends = factor("low").transpose()?.zip(factor("high").transpose()?);
        if let Some((low, high)) = ends.filter(|(low, high)| !(*low..=*high).contains(&times)) {
            return Err(refuse(format!(
                "`times` is {times}, but must be from its low of {low} to its high of {high}"
            )));
        }
        let of = match table.get("of").map(|of| of.get_ref()) {
            None => None,
            Some(DeValue::String(of)) => Some(of.to_string()),
            Some(other) => {
                return Err(refuse(format!("`of` is {}, not the name of a number", describe(other))));
            }
        };
        Ok(Changed::Times { times, ends, of })
    }
}

/// Reads a plain value in the key's dimension and range; problem and next step where it is refused.
pub(crate) fn read(key: &Key, name: &str, value: &Bare) -> Result<Quantity, (Problem, String)> {
    let example = if key.flag { "true".to_string() } else { format!("`{}`", key.dimension.example()) };
    let malformed = |reason: String| {
        (Problem::Malformed { name: name.to_string(), reason }, format!("write it as in {example}"))
    };
    let quantity = match value {
        Bare::Flag(flag) if key.flag => Quantity::Ratio(f64::from(u8::from(*flag))),
        Bare::Text(text) if key.flag => match text.as_str() {
            "true" => Quantity::Ratio(1.0),
            "false" => Quantity::Ratio(0.0),
            _ => return Err(malformed(format!("`{text}` is neither `true` nor `false`"))),
        },
        Bare::Flag(flag) => return Err(malformed(format!("expected {} and found `{flag}`", key.dimension))),
        Bare::Text(text) => {
            Quantity::parse(text, key.dimension).map_err(|error| malformed(error.to_string()))?
        }
    };
    check_range(key, name, quantity)?;
    Ok(quantity)
}

/// Refuses a quantity outside the key's range.
pub(crate) fn check_range(key: &Key, name: &str, value: Quantity) -> Result<(), (Problem, String)> {
    let whole = !key.flag || value.base().fract() == 0.0;
    if whole && key.range.holds(value.base()) {
        return Ok(());
    }
    Err((
        Problem::OutOfRange {
            name: name.to_string(),
            value: value.to_string(),
            bound: key.range.words.to_string(),
        },
        format!(
            "check the number and its unit; `{}` is well formed",
            if key.flag { "1" } else { key.dimension.example() }
        ),
    ))
}

/// Whether a number's value is still to be filled in. A blank end of an interval is none.
fn is_blank(number: &Spanned<DeValue<'_>>) -> bool {
    let value = number.get_ref().as_table().and_then(|table| table.get("value"));
    value.is_some_and(is_empty_text)
}

fn is_empty_text(value: &Spanned<DeValue<'_>>) -> bool {
    value.get_ref().as_str().is_some_and(|text| text.trim().is_empty())
}

/// A value that can be a quantity or a flag.
fn bare(value: &DeValue<'_>) -> Option<Bare> {
    match value {
        DeValue::String(text) => Some(Bare::Text(text.to_string())),
        DeValue::Integer(number) if number.radix() == 10 => Some(Bare::Text(number.as_str().to_string())),
        DeValue::Float(number) => Some(Bare::Text(number.as_str().to_string())),
        DeValue::Boolean(flag) => Some(Bare::Flag(*flag)),
        _ => None,
    }
}

fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the text `{text}`"),
        DeValue::Integer(number) => format!("the number `{}`", number.as_str()),
        DeValue::Float(number) => format!("the number `{}`", number.as_str()),
        DeValue::Boolean(flag) => format!("`{flag}`"),
        DeValue::Datetime(date) => format!("the date `{date}`"),
        DeValue::Array(_) => "a list".into(),
        DeValue::Table(_) => "a table".into(),
    }
}

/// A guess of a number with every part that a guess has to have.
fn guess(key: &Key) -> String {
    let (value, interval) = match key.flag {
        true => ("true".to_string(), ""),
        false => (quoted(key.dimension), " low = ..., high = ...,"),
    };
    format!("{{ value = {value},{interval} source = \"...\", provenance = \"assumed\" }}")
}

/// An example of the dimension as TOML writes it.
fn quoted(dimension: Dimension) -> String {
    if dimension.units().is_empty() {
        dimension.example().into()
    } else {
        format!("\"{}\"", dimension.example())
    }
}
