//! Changing numbers of a loaded system: overlays, settings, and one number at a time.

use crate::coherent;
use crate::document::{Bare, Change, Changed, Document, check_range, read};
use crate::error::{Place, ProfileError, SETTING, Source, did_you_mean, list, nearest};
use crate::renamed;
use crate::schema::{Component, Key, Kind};
use crate::{Category, Endpoint, Number, Problem, Processor, Provenance, ScaledNumber, System};
use offpath_quantity::{Dimension, Quantity};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

impl System {
    /// The same system with one number changed, for intervals and sensitivities.
    ///
    /// The number keeps its source and provenance, since nothing new is claimed about it. The value
    /// must have the number's dimension and lie in the range that loading accepts; a flag such as
    /// `host.ddio` is a ratio of 0 or 1. Where loading accepts powers of two alone, the nearest one is
    /// taken. It takes microseconds: nothing is read again.
    pub fn with(&self, name: &str, value: Quantity) -> Result<System, ProfileError> {
        self.with_all([(name, value)])
    }

    fn change(&mut self, name: &str, value: Quantity) -> Result<(), ProfileError> {
        let key = self.key_of(name, None)?;
        if value.dimension() != key.dimension {
            return Err(ProfileError::new(
                Problem::Malformed {
                    name: name.into(),
                    reason: format!(
                        "`{value}` has dimension {}, but {} is needed",
                        value.dimension(),
                        key.dimension
                    ),
                },
                format!("write it as in `{}`", key.dimension.example()),
                None,
            ));
        }
        let value = Quantity::from_base(key.range.nearest(value.base()), key.dimension).unwrap_or(value);
        check_range(key, name, value).map_err(|(problem, help)| ProfileError::new(problem, help, None))?;
        self.put(name, value).map_err(|(problem, help)| ProfileError::new(problem, help, None))?;
        match self.numbers.get_mut(name) {
            Some(number) => Arc::make_mut(number).value = value,
            None => {
                self.numbers.insert(name.into(), set_number(name, value, None, "a probe", "--set"));
            }
        }
        Ok(())
    }

    /// The same system with several numbers changed, as [`System::with`] changes one.
    pub fn with_all<'n>(
        &self,
        changes: impl IntoIterator<Item = (&'n str, Quantity)>,
    ) -> Result<System, ProfileError> {
        let mut changed = self.clone();
        for (name, value) in changes {
            changed.change(name, value)?;
        }
        // Other numbers may be drawn against each other, and the model answers for those.
        let counts = changed.machines.iter().try_for_each(coherent::check_count);
        counts.map_err(|misfit| misfit.refusal(None))?;
        Ok(changed)
    }

    /// The same system with links that carry nothing but payload, as the built-in overlay `ideal-links` has
    /// them: no model of headers makes its ports and links faster than this. What the overlay names and
    /// the system lacks is passed over.
    pub fn without_headers(&self) -> System {
        let library = crate::Library::builtin();
        let overlay = library.open(Category::Overlay, "ideal-links", None);
        let overlay = overlay.unwrap_or_else(|error| panic!("a built-in overlay is refused: {error}"));
        let mut changed = self.clone();
        for change in &overlay.changes {
            let named = self.numbers.keys().filter(|name| matches(&change.pattern, name));
            for name in named {
                // What is multiplied is not a header.
                let Changed::Value(bare, _) = &change.value else { continue };
                let value = self.key_of(name, None).and_then(|key| {
                    read(key, name, bare).map_err(|(problem, help)| ProfileError::new(problem, help, None))
                });
                let value = value.unwrap_or_else(|error| panic!("a built-in overlay is refused: {error}"));
                changed.fill(name, value);
            }
        }
        changed
    }

    /// Gives a number a value, and what is a multiple of it that of the product. Problem and next step where a
    /// product makes no sense.
    fn put(&mut self, name: &str, value: Quantity) -> Result<(), (Problem, String)> {
        // What is a multiple of a number follows that one alone.
        if !self.scales.iter().any(|scale| scale.name == name) {
            self.fill(name, value);
        }
        let mut scales = std::mem::take(&mut self.scales);
        let done = scales.iter_mut().filter(|scale| scale.of == name).try_for_each(|scale| {
            scale.value = self.product(&scale.name, scale.times, name, value)?;
            self.fill(&scale.name, scale.value);
            Ok(())
        });
        self.scales = scales;
        done
    }

    /// Makes `name` a multiple of a number from here on.
    fn scale(
        &mut self,
        name: &str,
        (times, ends): (f64, Option<(f64, f64)>),
        of: String,
        overlay: &str,
    ) -> Result<(), (Problem, String)> {
        let Some(number) = self.numbers.get(&of) else {
            let names: Vec<&str> = self.numbers.keys().map(String::as_str).collect();
            let near = did_you_mean(&of, &names);
            let problem =
                Problem::Unknown { what: "number".into(), name: of.clone(), place: "to multiply".into() };
            return Err((problem, format!("{near}name one of this system, or write the value itself")));
        };
        let value = self.product(name, times, &of, number.value)?;
        // Once itself, a number stays what it is and whose it is, as where it is set to the value that it has.
        if times == 1.0 && of == name && ends.is_none() {
            return Ok(());
        }
        self.fill(name, value);
        self.scales.retain(|scale| scale.name != name);
        self.scales.push(ScaledNumber { name: name.into(), times, ends, of, overlay: overlay.into(), value });
        Ok(())
    }

    /// Makes what overlays multiply the user's own numbers, with the interval of the product, but for the mechanisms of
    /// the card: whoever says that a number is another one says something that nobody measured.
    pub(crate) fn claim_multiples(&mut self) -> Result<(), ProfileError> {
        let is_mechanism =
            |scale: &ScaledNumber| self.variants.iter().any(|(variant, _)| *variant == scale.overlay);
        let (kept, own): (Vec<ScaledNumber>, Vec<ScaledNumber>) =
            self.scales.iter().cloned().partition(is_mechanism);
        self.scales = kept;
        for ScaledNumber { name, times, ends, of, overlay, value } in own {
            let (least, most) = ends.unwrap_or((times, times));
            let multiplied = self.numbers.get(&of);
            // Of an exact number the product has an interval where the factor has one.
            let end = |times: f64, end: fn(&Number) -> Option<Quantity>| {
                let multiplied = multiplied?;
                let end = end(multiplied).or(ends.map(|_| multiplied.value))?;
                self.product(&name, times, &of, end).ok()
            };
            let (low, high) = (end(least, |of| of.low), end(most, |of| of.high));
            let source = format!("overlay {overlay}: {times} times {of}");
            let mut number =
                Arc::unwrap_or_clone(set_number(&name, value, self.numbers.get(&name), &source, &overlay));
            (number.low, number.high) = low.zip(high).unzip();
            number.multiple_of = Some(of);
            self.put(&name, value).map_err(|(problem, help)| ProfileError::new(problem, help, None))?;
            self.numbers.insert(name, Arc::new(number));
        }
        Ok(())
    }

    /// So many times the value of a number, as a value of `name`.
    fn product(
        &self,
        name: &str,
        times: f64,
        of: &str,
        value: Quantity,
    ) -> Result<Quantity, (Problem, String)> {
        let key =
            self.key_of(name, None).unwrap_or_else(|error| panic!("a scaled number is unknown: {error}"));
        let refuse =
            |reason: String, help: &str| (Problem::Malformed { name: name.into(), reason }, help.to_string());
        if value.dimension() != key.dimension {
            return Err(refuse(
                format!("`{of}` is a {}, but a {} is needed", value.dimension(), key.dimension),
                "multiply a number of the same dimension, or write the value itself",
            ));
        }
        let product = match key.dimension {
            Dimension::Ratio => value.base() * times,
            _ => (value.base() * times).round(),
        };
        let product = Quantity::from_base(key.range.nearest(product), key.dimension)
            .ok_or_else(|| refuse(format!("{times} times {value} is too large"), "lower the factor"))?;
        check_range(key, name, product)?;
        Ok(product)
    }

    /// Fills the field of a dotted name; `false` where there is none of that dimension.
    fn fill(&mut self, name: &str, value: Quantity) -> bool {
        let Some((component, key)) = name.rsplit_once('.') else { return false };
        let mut done = component == "network" && self.network.put(key, value);
        for machine in &mut self.machines {
            // A machine and its host share a name; their keys differ.
            done |= machine.role == component && machine.put(key, value);
            done |= machine.nic.name == component && machine.nic.put(key, value);
            for part in machine.switches.iter_mut().filter(|part| part.name == component) {
                done |= part.put(key, value);
            }
            for part in machine.links.iter_mut().filter(|part| part.name == component) {
                done |= part.put(key, value);
            }
            // A processor or memory may be part of several endpoints.
            for Endpoint { processor, memory, .. } in machine.endpoints.iter_mut().chain(&mut machine.apart) {
                done |= processor.name == component && processor.put(key, value);
                done |= processor.verbs.name == component && processor.verbs.put(key, value);
                if let Some(packets) = processor.packets.as_mut().filter(|costs| costs.name == component) {
                    done |= packets.put(key, value);
                }
                for work in processor.works.iter_mut().filter(|work| work.name == component) {
                    done |= work.put(key, value);
                }
                done |= memory.name == component && memory.put(key, value);
            }
            for part in machine.memories.iter_mut().filter(|part| part.name == component) {
                done |= part.put(key, value);
            }
            for part in machine.caches.iter_mut().filter(|part| part.name == component) {
                done |= part.put(key, value);
            }
            for part in machine.reaches.iter_mut().filter(|part| part.name == component) {
                done |= part.put(key, value);
            }
            for part in machine.engines.iter_mut().filter(|part| part.name == component) {
                done |= part.put(key, value);
            }
            for part in machine.large_transfer_limits.iter_mut().filter(|part| part.name == component) {
                done |= part.put(key, value);
            }
            for part in machine.other_work.iter_mut().filter(|part| part.name == component) {
                done |= part.put(key, value);
            }
        }
        done
    }

    /// Every component by its dotted name, with its kind.
    fn components(&self) -> impl Iterator<Item = (&str, Kind)> {
        let machines = self.machines.iter().flat_map(|machine| {
            let link = |link: &crate::Link| if link.pcie.is_some() { Kind::Link } else { Kind::Wire };
            let nic = if machine.nic.carries_verbs { Kind::Nic } else { Kind::Port };
            let own = [(machine.role.as_str(), Kind::Machine), (machine.nic.name.as_str(), nic)];
            own.into_iter()
                .chain(machine.switches.iter().map(|part| (part.name.as_str(), Kind::Switch)))
                .chain(machine.links.iter().map(move |part| (part.name.as_str(), link(part))))
                .chain(machine.endpoints.iter().flat_map(|part| {
                    let Processor { name, verbs, packets, works, .. } = &part.processor;
                    let is_alone = *name != part.memory.name;
                    let kind = if is_alone { Kind::Processor } else { Kind::Endpoint };
                    let packets = packets.iter().map(|costs| (costs.name.as_str(), Kind::Packets));
                    let works = works.iter().map(|work| (work.name.as_str(), Kind::Work));
                    let own = [(name.as_str(), kind), (verbs.name.as_str(), Kind::Verbs)];
                    own.into_iter().chain(packets).chain(works)
                }))
                .chain(machine.memories.iter().map(|part| (part.name.as_str(), Kind::Memory)))
                .chain(machine.caches.iter().map(|part| (part.name.as_str(), Kind::Cache)))
                .chain(machine.reaches.iter().map(|part| (part.name.as_str(), Kind::Reach)))
                .chain(machine.engines.iter().map(|part| (part.name.as_str(), Kind::Engine)))
                .chain(
                    machine
                        .large_transfer_limits
                        .iter()
                        .map(|part| (part.name.as_str(), Kind::LargeTransferLimit)),
                )
                .chain(machine.other_work.iter().map(|part| (part.name.as_str(), Kind::OtherWork)))
        });
        std::iter::once(("network", Kind::Network)).chain(machines)
    }

    /// What a number of the system is, as one sentence; `None` where there is none of that name.
    pub fn documentation(&self, name: &str) -> Option<String> {
        self.key_of(name, None).ok().map(Key::documentation)
    }

    /// Between what loading accepts a number of this name; nothing where there is no such number.
    pub fn range_of(&self, name: &str) -> Option<(Quantity, Quantity)> {
        let key = self.key_of(name, None).ok()?;
        let [least, most] =
            [key.range.least, key.range.most].map(|end| Quantity::from_base(end, key.dimension));
        least.zip(most)
    }

    /// The schema's entry for a dotted name, or a refusal with the nearest names.
    pub(crate) fn key_of(&self, name: &str, place: Option<Place<'_>>) -> Result<&'static Key, ProfileError> {
        let (component, key) = name.rsplit_once('.').unwrap_or((name, ""));
        let of_component = || self.components().filter(|(own, _)| *own == component).map(|(_, kind)| kind);
        if let Some(found) = of_component().flat_map(Kind::keys).find(|entry| entry.name == key) {
            return Ok(found);
        }
        let unknown =
            Problem::Unknown { what: "number".into(), name: name.into(), place: "in the system".into() };
        let hidden =
            self.machines.iter().flat_map(|machine| &machine.absent).any(|absent| absent == component);
        if hidden {
            let problem =
                Problem::Mode { what: "endpoint".into(), name: component.into(), mode: self.mode.clone() };
            return Err(ProfileError::new(
                problem,
                "choose another mode of the card, or leave the number out",
                place,
            ));
        }
        if let Some(new) = renamed::number(name).filter(|new| self.key_of(new, None).is_ok()) {
            return Err(ProfileError::new(unknown, format!("it is called `{new}` now"), place));
        }
        let names: Vec<&str> = self.numbers.keys().map(String::as_str).collect();
        // A key without its component is the commonest slip: offer every component that has it.
        let whole: Vec<&str> =
            names.iter().copied().filter(|own| own.ends_with(&format!(".{name}"))).collect();
        let near = match &whole[..] {
            [] => did_you_mean(name, &names),
            whole => format!("did you mean one of {}? ", list(whole.iter().copied())),
        };
        let keys: Vec<String> =
            of_component().flat_map(Kind::keys).map(|entry| format!("{component}.{}", entry.name)).collect();
        let mut help = if keys.is_empty() {
            let mut seen = BTreeSet::new();
            let components = self.components().map(|(own, _)| own);
            let components = components.filter(|own| !own.contains('.') && seen.insert(*own));
            let others: Vec<&str> = self.machines.iter().map(|machine| machine.prefix.as_str()).collect();
            let others: Vec<&str> = others.into_iter().filter(|prefix| !prefix.is_empty()).collect();
            let more = match &others[..] {
                [] => String::new(),
                others => format!("; those of other machines start with {}", list(others.iter().copied())),
            };
            format!("{near}components: {}{more}", list(components))
        } else {
            format!("{near}`{component}` has {}", list(keys.iter().map(String::as_str)))
        };
        if let Some(machine) = self.machines.iter().find(|machine| !machine.absent.is_empty()) {
            let absent = list(machine.absent.iter().map(String::as_str));
            help = format!("{help}; mode `{}` hides {absent} and what belongs there", self.mode);
        }
        Err(ProfileError::new(unknown, help, place))
    }
}

/// A number that the user gives, in place of `before`.
fn set_number(
    name: &str,
    value: Quantity,
    before: Option<&Arc<Number>>,
    source: &str,
    file: &str,
) -> Arc<Number> {
    Arc::new(Number {
        value,
        low: None,
        high: None,
        replaced: before.map(|before| before.replaced.unwrap_or(before.value)),
        source: source.to_string(),
        provenance: Provenance::Set,
        rows: Vec::new(),
        note: String::new(),
        file: file.to_string(),
        key: name.to_string(),
        multiple_of: None,
    })
}

/// Applies an overlay: each line to every number that its pattern matches. Where a card stands beside this system,
/// `shared` holds the numbers of both, and a line that names another one speaks of that card alone.
pub(crate) fn apply(
    system: &mut System,
    overlay: &Document,
    shared: Option<&BTreeSet<String>>,
) -> Result<(), ProfileError> {
    let name = overlay.header(Category::Overlay).and_then(|header| header.word("name")).unwrap_or_default();
    let overlay_name = name;
    let source = format!("overlay {name}");
    // A mechanism is the card's: every machine that carries it has it, and no other.
    let is_mechanism = system.variants.iter().any(|(variant, _)| variant == name);
    let card = system.machines.first().map(|machine| machine.device.clone());
    let alike: Vec<String> = system
        .machines
        .iter()
        .filter(|machine| {
            is_mechanism && Some(&machine.device) == card.as_ref() && !machine.prefix.is_empty()
        })
        .map(|machine| machine.prefix.clone())
        .collect();
    for change in &overlay.changes {
        let mut names: Vec<String> =
            system.numbers.keys().filter(|name| matches(&change.pattern, name)).cloned().collect();
        let pattern_place = (&overlay.source, change.pattern_span.clone());
        let of = match &change.value {
            Changed::Times { of, .. } => of.as_ref(),
            Changed::Value(..) => None,
        };
        let is_other = |shared: &BTreeSet<String>| match change.pattern.contains('*') {
            true => names.is_empty(),
            false => ![Some(&change.pattern), of].into_iter().flatten().all(|name| shared.contains(name)),
        };
        if !is_mechanism && shared.is_some_and(is_other) {
            continue;
        }
        if names.is_empty() && change.pattern.contains('*') {
            let keys: Vec<&str> =
                system.numbers.keys().filter_map(|name| name.rsplit_once('.')).map(|(_, key)| key).collect();
            let meant = change.pattern.rsplit_once('.').map(|(before, key)| (before, nearest(key, &keys)));
            let any = |pattern: &str| system.numbers.keys().any(|name| matches(pattern, name));
            let now = renamed::number(&change.pattern).filter(|now| any(now));
            let near = match meant {
                _ if now.is_some() => {
                    now.map(|now| format!("it is called `{now}` now; ")).unwrap_or_default()
                }
                Some((before, near)) if !near.is_empty() => {
                    let patterns: Vec<String> = near.iter().map(|key| format!("{before}.{key}")).collect();
                    crate::error::question(
                        patterns.iter().filter(|pattern| any(pattern)).map(String::as_str).collect(),
                    )
                }
                _ => String::new(),
            };
            return Err(ProfileError::new(
                Problem::Unknown {
                    what: "number that matches".into(),
                    name: change.pattern.clone(),
                    place: "in the system".into(),
                },
                format!(
                    "{near}`*` stands for any run of characters in a name such as `client.pcie0.encoding`; correct \
                     the pattern or remove the line"
                ),
                Some(pattern_place),
            ));
        }
        if names.is_empty() {
            names.push(change.pattern.clone());
        }
        if !change.pattern.contains('*') {
            names.extend(alike.iter().map(|prefix| format!("{prefix}{}", change.pattern)));
        }
        for name in names {
            let key = system.key_of(&name, Some(pattern_place.clone()))?;
            let refuse = |(problem, help): (Problem, String)| {
                ProfileError::new(problem, help, Some((&overlay.source, change.value_span.clone())))
            };
            let (bare, ends) = match &change.value {
                Changed::Value(bare, ends) => (bare, ends),
                Changed::Times { times, ends, of } => {
                    if is_mechanism && ends.is_some() {
                        let reason =
                            "a mechanism multiplies a number that keeps its own interval".to_string();
                        let help =
                            "leave `low` and `high` out, or write the value with its interval".to_string();
                        return Err(refuse((Problem::Malformed { name, reason }, help)));
                    }
                    let prefix = alike.iter().find(|prefix| name.starts_with(prefix.as_str()));
                    let of = of.as_ref().map_or_else(
                        || name.clone(),
                        |of| format!("{}{of}", prefix.map_or("", String::as_str)),
                    );
                    system.scale(&name, (*times, *ends), of, overlay_name).map_err(refuse)?;
                    continue;
                }
            };
            let value = read(key, &name, bare).map_err(refuse)?;
            let ends = match ends {
                Some((low, high)) => {
                    let end = |end: &Bare| read(key, &name, end).map_err(refuse);
                    let (low, high) = (end(low)?, end(high)?);
                    if !(low.base()..=high.base()).contains(&value.base()) {
                        let bound = format!("from its low of {low} to its high of {high}");
                        let problem = Problem::OutOfRange { name, value: value.to_string(), bound };
                        return Err(refuse((problem, "correct one of the three".to_string())));
                    }
                    Some((low, high))
                }
                None => None,
            };
            if ends.is_some() || system.numbers.get(&name).is_none_or(|number| number.value != value) {
                system.scales.retain(|scale| scale.name != name);
                system.put(&name, value).map_err(refuse)?;
                let before = system.numbers.get(&name);
                let mut number = set_number(&name, value, before, &source, &overlay.source.name);
                (Arc::make_mut(&mut number).low, Arc::make_mut(&mut number).high) = ends.unzip();
                system.numbers.insert(name, number);
            }
        }
    }
    Ok(())
}

/// Applies a setting such as `soc.pcie_mtu=512B`; `false` where it speaks of the card beside this system, of whose
/// numbers `shared` are this system's too.
pub(crate) fn set(
    system: &mut System,
    setting: &str,
    shared: Option<&BTreeSet<String>>,
) -> Result<bool, ProfileError> {
    let source = setting_source(setting);
    let split = setting.split_once('=');
    if split.is_some_and(|(name, _)| name.trim().is_empty()) {
        return Err(ProfileError::new(
            Problem::Malformed { name: setting.into(), reason: "there is no name before the `=`".into() },
            "write a setting as in `soc.pcie_mtu=512B`",
            Some((&source, 0..setting.len())),
        ));
    }
    let Some((name, value)) = split else {
        return Err(ProfileError::new(
            Problem::Malformed {
                name: setting.into(),
                reason: "there is no `=` between name and value".into(),
            },
            "write a setting as in `soc.pcie_mtu=512B`",
            Some((&source, 0..setting.len())),
        ));
    };
    let trimmed = name.trim();
    if shared.is_some_and(|shared| !shared.contains(trimmed)) {
        return Ok(false);
    }
    let key = system.key_of(trimmed, Some((&source, 0..name.len())))?;
    let value = read(key, trimmed, &Bare::Text(value.trim().to_string())).map_err(|(problem, help)| {
        ProfileError::new(problem, help, Some((&source, name.len() + 1..setting.len())))
    })?;
    let refused = |problem: Problem, help: String| {
        ProfileError::new(problem, help, Some((&source, name.len() + 1..setting.len())))
    };
    let scale = system.scales.iter().find(|scale| scale.name == trimmed);
    // An overlay that multiplies a number by itself multiplies what is set.
    if let Some(own) = scale.filter(|scale| scale.of == trimmed && scale.times == 0.0 && value.base() != 0.0)
    {
        return Err(refused(
            Problem::Malformed {
                name: setting.into(),
                reason: format!("overlay `{}` takes 0 times whatever is set", own.overlay),
            },
            format!("leave this setting out, or `--overlay {}`", own.overlay),
        ));
    }
    let multiple = scale.filter(|scale| scale.of != trimmed).map(|scale| scale.value);
    let there = multiple.or_else(|| Some(system.numbers.get(trimmed)?.value));
    // A setting to the value that is there claims nothing new: origin and interval stay.
    if there != Some(value) {
        // What is set is that, and no multiple of another number.
        system.scales.retain(|scale| scale.name != trimmed || scale.of == trimmed);
        system.put(trimmed, value).map_err(|(problem, help)| refused(problem, help))?;
        let number = set_number(trimmed, value, system.numbers.get(trimmed), "--set", "--set");
        system.numbers.insert(trimmed.to_string(), number);
    }
    Ok(true)
}

/// The text that a setting is read from.
fn setting_source(setting: &str) -> Arc<Source> {
    Arc::new(Source { name: SETTING.into(), text: setting.to_string() })
}

/// Where one of these numbers was last said, of settings and overlays: settings are applied after overlays.
pub(crate) fn said_at(
    names: &[String],
    settings: &[String],
    overlays: &[Document],
) -> Option<(Arc<Source>, Range<usize>)> {
    let sets = |setting: &&String| {
        let own = setting.split('=').next().map(str::trim);
        names.iter().any(|name| own == Some(name))
    };
    if let Some(setting) = settings.iter().rfind(sets) {
        return Some((setting_source(setting), 0..setting.len()));
    }
    let changes =
        overlays.iter().flat_map(|overlay| overlay.changes.iter().map(move |change| (overlay, change)));
    let says = |(_, change): &(_, &Change)| names.iter().any(|name| matches(&change.pattern, name));
    let (overlay, change) = changes.rev().find(says)?;
    Some((overlay.source.clone(), change.pattern_span.start..change.value_span.end))
}

/// Whether the pattern, in which `*` stands for any run of characters, matches all of the name.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    // Without a `*` nothing may be left over; with one, the last part stands at the very end.
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}
