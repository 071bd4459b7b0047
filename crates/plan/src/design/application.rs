//! What a design tells an application.

use super::resolve::{Named, Read, Resolver};
use super::steps::Context;
use super::{Code, ObjectAccess};
use crate::implemented::{
    Application, Implementation, LOG_ALTERNATIVES, LogSettings, PLACEMENTS, StoreSettings,
};
use offpath_apps::kv::StoreCosts;
use offpath_apps::replog::LogCosts;
use offpath_quantity::{Bytes, Dimension, Time};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;

/// The longest value that the implemented store keeps.
const LONGEST_VALUE: Bytes = Bytes::new(65_535);

impl Resolver<'_> {
    /// The application, with everything that it has to be told.
    pub(super) fn application(
        &self,
        objects: &BTreeMap<String, ObjectAccess>,
    ) -> Result<(Option<Application>, BTreeMap<&'static str, Named>), miette::Report> {
        let Some(spanned) = &self.file.raw.application else { return Ok((None, BTreeMap::new())) };
        let raw = spanned.get_ref();
        let is_store = match raw.name.get_ref().as_str() {
            "kv" => true,
            "replog" => false,
            other => {
                return Err(self.error(
                    format!("`{other}` is not an application"),
                    "use `kv` or `replog`, or leave [application] out and describe steps",
                    raw.name.span(),
                ));
            }
        };
        fn span<T>(given: &Option<Spanned<T>>) -> Option<Range<usize>> {
            given.as_ref().map(Spanned::span)
        }
        let store = [
            ("value", span(&raw.value)),
            ("index", span(&raw.index)),
            ("values", span(&raw.values)),
            ("build", span(&raw.build)),
            ("search", span(&raw.search)),
            ("check", span(&raw.check)),
            ("card_hash", span(&raw.card_hash)),
            ("card_search", span(&raw.card_search)),
            ("card_lookup", span(&raw.card_lookup)),
        ];
        let log = [
            ("chunk", span(&raw.chunk)),
            ("ratio", span(&raw.ratio)),
            ("compress", span(&raw.compress)),
            ("append", span(&raw.append)),
            ("chain", raw.chain.as_ref().and_then(|chain| chain.first()).map(Spanned::span)),
        ];
        let foreign = if is_store { &log[..] } else { &store[..] };
        if let Some((key, at)) = foreign.iter().find_map(|(key, at)| Some((*key, at.clone()?))) {
            return Err(self.error(
                format!("`{key}` is nothing that `{}` is told", raw.name.get_ref()),
                "leave it out",
                at,
            ));
        }
        let needed = |key: &str, given: &Option<Spanned<toml::Value>>, example: &str| {
            given.clone().ok_or_else(|| {
                self.error(
                    format!("[application] does not say `{key}`, which `{}` needs", raw.name.get_ref()),
                    format!("add `{key} = \"{example}\"`"),
                    raw.name.span(),
                )
            })
        };
        let tell = |read: &Read| self.told.borrow_mut().extend(read.rests_on.iter().cloned());
        let times: RefCell<BTreeMap<&'static str, Named>> = RefCell::default();
        let time = |key: &'static str, given: &Option<Spanned<toml::Value>>| {
            let (time, read) = self.time(&format!("application.{key}"), &needed(key, given, "80 ns")?)?;
            tell(&read);
            times.borrow_mut().insert(key, Named { dimension: Dimension::Time, read });
            Ok::<_, miette::Report>(time)
        };
        let object = |given: &Option<Spanned<String>>| match given {
            Some(name) if !objects.contains_key(name.get_ref()) => Err(self.unknown_object(name)),
            given => Ok(given.as_ref().map(|name| name.get_ref().clone())),
        };
        let rate = |key: &str, given: &Option<Spanned<toml::Value>>| -> Result<u64, miette::Report> {
            let Some(given) = given else { return Ok(0) };
            let (rate, read) = self.rate(&format!("application.{key}"), given)?;
            tell(&read);
            match rate / 8 {
                0 => Err(self.error(
                    "the rate is less than a byte a second",
                    "write what one core does, or leave it out",
                    given.span(),
                )),
                bytes => Ok(bytes),
            }
        };
        let engine = raw.engine.as_ref().map(|engine| engine.get_ref().clone());
        if is_store {
            let given = needed("value", &raw.value, "record")?;
            let (value, read) = self.bytes("application.value", &given)?;
            tell(&read);
            if value > LONGEST_VALUE {
                return Err(self.error(
                    format!("`value` is {value}; the store keeps values of up to {LONGEST_VALUE}"),
                    "lower `fieldlength` or `fieldcount` of the workload, or name the bytes of a value",
                    given.span(),
                ));
            }
            let store = Application::Store(StoreSettings {
                value,
                costs: StoreCosts {
                    build: time("build", &raw.build)?,
                    search: time("search", &raw.search)?,
                    check: time("check", &raw.check)?,
                    card_hash: time("card_hash", &raw.card_hash)?,
                    card_search: time("card_search", &raw.card_search)?,
                    card_lookup: time("card_lookup", &raw.card_lookup)?,
                },
                engine,
                index: object(&raw.index)?,
                values: object(&raw.values)?,
            });
            return Ok((Some(store), times.into_inner()));
        }
        let given = needed("ratio", &raw.ratio, "ratio")?;
        let read = self.number("application.ratio", &given, Dimension::Ratio)?;
        tell(&read);
        let ratio = read.base;
        if !(0.0..=1.0).contains(&ratio) {
            return Err(self.error(
                format!("the implemented log is asked for a compression ratio of {ratio}"),
                "use 0 to 1: what compression would make longer is sent as it is",
                given.span(),
            ));
        }
        let chain = raw.chain.iter().flatten().map(|name| name.get_ref().clone()).collect::<Vec<_>>();
        if chain.is_empty() {
            return Err(self.error(
                "[application] does not say `chain`, which `replog` needs",
                "add `chain = [\"backup\"]`: the endpoints of the backups, in order",
                raw.name.span(),
            ));
        }
        let given = needed("chunk", &raw.chunk, "chunk")?;
        let (chunk, read) = self.bytes("application.chunk", &given)?;
        tell(&read);
        // The log names the length of a chunk in 29 bits, and following its code needs one in memory.
        if !(Bytes::new(1)..=Bytes::new(1 << 29)).contains(&chunk) {
            return Err(self.error(
                format!("`chunk` is {chunk}; it has to be from 1 B to {}", Bytes::new(1 << 29)),
                "name the bytes of the log that go at once",
                given.span(),
            ));
        }
        let log = Application::Log(LogSettings {
            chunk,
            ratio,
            chain,
            engine,
            costs: LogCosts {
                compress_bytes_per_second: rate("compress", &raw.compress)?,
                file_bytes_per_second: rate("append", &raw.append)?,
                // Waiting for a disk takes no station's time, and plans assume memory that survives.
                sync: Time::ZERO,
            },
        });
        Ok((Some(log), BTreeMap::new()))
    }

    /// What the application calls an alternative.
    pub(super) fn code(
        &self,
        given: Option<&Spanned<String>>,
        application: Option<&Application>,
        context: &Context<'_>,
    ) -> Result<Option<Code>, miette::Report> {
        let Some(given) = given else { return Ok(None) };
        let Some(application) = application else {
            return Err(self.error(
                "`code` names an alternative of an application, and the design names none",
                "add [application] with `name = \"kv\"` or `name = \"replog\"`",
                given.span(),
            ));
        };
        let all: Vec<(&str, Implementation)> = match application {
            Application::Store(_) => {
                PLACEMENTS.iter().map(|(name, one)| (*name, Implementation::Store(*one))).collect()
            }
            Application::Log(_) => {
                LOG_ALTERNATIVES.iter().map(|(name, one)| (*name, Implementation::Log(*one))).collect()
            }
        };
        let Some((_, kind)) = all.iter().find(|(name, _)| name == given.get_ref()) else {
            let known: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
            return Err(self.error(
                format!("the implemented {} has no alternative `{}`", application.title(), given.get_ref()),
                format!("use one of {}", known.join(", ")),
                given.span(),
            ));
        };
        let hit_ratio = self.hits(context).base;
        Ok(Some(Code { kind: *kind, hit_ratio, span: given.span() }))
    }
}
