//! What a design tells an application.

use super::resolve::{Named, Read, Resolver};
use super::steps::Context;
use super::{Code, MORE_HELP, ObjectAccess};
use crate::implemented::Application;
use offpath_apps::system::{About, Given, GivenValue, Key, KeyKind};
use offpath_quantity::{BitRate, Dimension};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;

/// The key that names the application.
const NAME: &str = "name";

impl Resolver<'_> {
    /// The application, with everything that it has to be told.
    pub(super) fn application(
        &self,
        objects: &BTreeMap<String, ObjectAccess>,
    ) -> Result<(Option<Application>, BTreeMap<&'static str, Named>), miette::Report> {
        let Some(spanned) = &self.file.raw.application else { return Ok((None, BTreeMap::new())) };
        let raw = spanned.get_ref();
        let known = (self.file.changes.systems.all)();
        let mut keys = vec![NAME];
        for key in known.iter().flat_map(|about| about.keys).map(|key| key.name) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        if let Some(strange) = raw.keys().find(|key| !keys.contains(&key.get_ref().as_str())) {
            let quoted: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
            return Err(self.error(
                format!("unknown field `{}`, expected one of {}", strange.get_ref(), quoted.join(", ")),
                MORE_HELP,
                strange.span(),
            ));
        }
        let Some(given) = raw.get(NAME) else {
            return Err(self.error(format!("missing field `{NAME}`"), MORE_HELP, spanned.span()));
        };
        let name: String = self.plain(given)?;
        let Some(system) = (self.file.changes.systems.find)(&name) else {
            let names: Vec<String> = known.iter().map(|about| format!("`{}`", about.name)).collect();
            return Err(self.error(
                format!("`{name}` is not an application"),
                format!("use {}, or leave [application] out and describe steps", names.join(" or ")),
                given.span(),
            ));
        };
        let about = system.about;
        let is_foreign = |key: &&str| *key != NAME && about.keys.iter().all(|own| own.name != *key);
        let mut foreign = keys.iter().copied().filter(is_foreign);
        if let Some((key, at)) = foreign.find_map(|key| Some((key, raw.get(key)?))) {
            return Err(self.error(
                format!("`{key}` is nothing that `{name}` is told"),
                "leave it out",
                at.span(),
            ));
        }
        let (mut values_of, mut times) = (Given::default(), BTreeMap::new());
        for key in about.keys {
            let values = match raw.get(key.name) {
                Some(given) => self.told_by(key, given, objects, &mut times)?,
                None => Vec::new(),
            };
            if let (true, Some(example)) = (values.is_empty(), key.needed) {
                return Err(self.untold(about, key, example, given.span()));
            }
            values_of.set(key.name, values);
        }
        Ok((Some(Application { system, given: values_of }), times))
    }

    fn untold(&self, about: &About, key: &Key, example: &str, at: Range<usize>) -> miette::Report {
        let what = match key.kind {
            KeyKind::Endpoints => format!(": {}", key.documentation),
            _ => String::new(),
        };
        self.error(
            format!("[application] does not say `{}`, which `{}` needs", key.name, about.name),
            format!("add `{} = {example}`{what}", key.name),
            at,
        )
    }

    /// A value that is not a number.
    fn plain<T: DeserializeOwned>(&self, given: &Spanned<toml::Value>) -> Result<T, miette::Report> {
        let read = given.get_ref().clone().try_into();
        read.map_err(|error: toml::de::Error| self.error(error.message(), MORE_HELP, given.span()))
    }

    /// What a key of the application tells it.
    fn told_by(
        &self,
        key: &Key,
        given: &Spanned<toml::Value>,
        objects: &BTreeMap<String, ObjectAccess>,
        times: &mut BTreeMap<&'static str, Named>,
    ) -> Result<Vec<GivenValue>, miette::Report> {
        let id = format!("application.{}", key.name);
        let number = |value, shown: String, base: f64, read: &Read| {
            self.told.borrow_mut().extend(read.rests_on.iter().cloned());
            match &key.bounds {
                Some(bounds) if !(bounds.least..=bounds.most).contains(&base) => {
                    Err(self.error((bounds.refusal)(&shown), bounds.help, given.span()))
                }
                _ => Ok(vec![value]),
            }
        };
        match key.kind {
            KeyKind::Time => {
                let (time, read) = self.time(&id, given)?;
                let values = number(GivenValue::Time(time), time.to_string(), time.ps() as f64, &read)?;
                times.insert(key.name, Named { dimension: Dimension::Time, read });
                Ok(values)
            }
            KeyKind::Bytes => {
                let (bytes, read) = self.bytes(&id, given)?;
                number(GivenValue::Bytes(bytes), bytes.to_string(), bytes.get() as f64, &read)
            }
            KeyKind::Ratio => {
                let read = self.number(&id, given, Dimension::Ratio)?;
                number(GivenValue::Ratio(read.base), read.base.to_string(), read.base, &read)
            }
            KeyKind::Rate => {
                let (rate, read) = self.rate(&id, given)?;
                if rate < 8 {
                    return Err(self.error(
                        "the rate is less than a byte a second",
                        "write what one core does, or leave it out",
                        given.span(),
                    ));
                }
                let rate = BitRate::from_bits_per_second(rate);
                number(GivenValue::Rate(rate), rate.to_string(), rate.bits_per_second() as f64, &read)
            }
            KeyKind::Object => {
                let name: String = self.plain(given)?;
                if !objects.contains_key(&name) {
                    return Err(self.unknown_object(&Spanned::new(given.span(), name)));
                }
                Ok(vec![GivenValue::Text(name)])
            }
            KeyKind::Engine => Ok(vec![GivenValue::Text(self.plain(given)?)]),
            KeyKind::Endpoints => {
                Ok(self.plain::<Vec<String>>(given)?.into_iter().map(GivenValue::Text).collect())
            }
        }
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
            let known = (self.file.changes.systems.all)();
            let names: Vec<String> =
                known.iter().map(|about| format!("`name = \"{}\"`", about.name)).collect();
            return Err(self.error(
                "`code` names an alternative of an application, and the design names none",
                format!("add [application] with {}", names.join(" or ")),
                given.span(),
            ));
        };
        let known = || application.system.about.alternatives.iter().filter(|one| one.in_designs);
        let Some(found) = known().find(|one| one.label == given.get_ref()) else {
            let labels: Vec<&str> = known().map(|one| one.label).collect();
            return Err(self.error(
                format!("the implemented {} has no alternative `{}`", application.title(), given.get_ref()),
                format!("use one of {}", labels.join(", ")),
                given.span(),
            ));
        };
        let hit_ratio = self.hits(context).base;
        Ok(Some(Code { alternative: found.label, hit_ratio, span: given.span() }))
    }
}
