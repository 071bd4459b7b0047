//! Choices that a design leaves open: each alternative once for every value that `{name}` may stand for in it.
//!
//! What stands in an alternative's `choose` may differ from request to request, so that its values are alternatives of one
//! mix. What stands under `[choose]` is one value for the whole deployment.

use super::file::{RawAlternative, RawChoice, RawStep};
use super::resolve::{RECORD, Resolver};
use super::set_number;
use crate::estimate::Written;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use toml::Spanned;

/// Alternatives that the open choices of a design may make of it: each is compiled once.
const MOST_EXPANDED: usize = 1024;

/// The numbers that say how many threads of a processor run at once.
const THREAD_COUNTS: [&str; 2] = ["cores", "threads_per_core"];

/// A choice that a design leaves open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenChoice {
    /// Its name.
    pub name: String,
    /// The alternative whose requests may differ in it; none where the whole deployment has one value.
    pub of: Option<String>,
    /// Its values as the file writes them; of two that are as good the first is taken.
    pub values: Vec<String>,
    /// Whether a number of the system goes by it.
    pub in_set: bool,
    /// Whether nothing goes by it but how many cores or threads processors have. These enter what stations carry and no
    /// demand, so that more of them never carry less.
    pub counts_threads: bool,
}

/// A choice as one alternative takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenChoice {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Whether the whole deployment has that value.
    pub is_for_all: bool,
}

/// An alternative with a value for each of its choices.
pub(super) struct Expanded {
    pub name: String,
    /// What it gives itself.
    pub given: RawAlternative,
    /// What lends it its steps; itself where nothing does.
    pub base: RawAlternative,
    pub choices: Vec<TakenChoice>,
}

/// A value as it stands in a text.
fn text_of(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The names that stand in braces in a text, each with what follows it.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let inner = text.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0));
    inner.filter(|name| is_name(name))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|one| one.is_ascii_alphanumeric() || "_-".contains(one))
}

/// Puts values in the places of their names, and notes which names it met.
#[derive(Default)]
struct Substitution<'c> {
    values: BTreeMap<&'c str, &'c toml::Value>,
    met: RefCell<BTreeMap<String, Range<usize>>>,
    label: String,
}

impl Substitution<'_> {
    fn text(&self, text: &str, at: &Range<usize>) -> String {
        let mut changed = text.to_string();
        for name in named(text) {
            self.met.borrow_mut().entry(name.to_string()).or_insert_with(|| at.clone());
            if let Some(value) = self.values.get(name) {
                changed = changed.replace(&format!("{{{name}}}"), &text_of(value));
            }
        }
        changed
    }

    fn string(&self, given: &Spanned<String>) -> Spanned<String> {
        Spanned::new(given.span(), self.text(given.get_ref(), &given.span()))
    }

    fn strings(&self, given: &Option<Spanned<String>>) -> Option<Spanned<String>> {
        given.as_ref().map(|given| self.string(given))
    }

    /// A number, and whether another one stands there now.
    fn number(&self, given: &mut Option<Spanned<toml::Value>>) -> bool {
        let Some(own) = given else { return false };
        let toml::Value::String(text) = own.get_ref() else { return false };
        let substituted = self.text(text, &own.span());
        // A number that stands for itself keeps its kind.
        let whole = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let value = match whole.and_then(|name| self.values.get(name)) {
            Some(value) => toml::Value::clone(value),
            None if substituted == *text => return false,
            None => toml::Value::String(substituted),
        };
        *own = Spanned::new(own.span(), value);
        true
    }

    fn steps(&self, steps: &[Spanned<RawStep>]) -> Vec<Spanned<RawStep>> {
        steps.iter().map(|step| Spanned::new(step.span(), self.step(step.get_ref()))).collect()
    }

    fn step(&self, given: &RawStep) -> RawStep {
        let mut step = given.clone();
        step.verbs = given.verbs.iter().map(|(verb, path)| (*verb, self.string(path))).collect();
        step.object = self.strings(&given.object);
        step.compute = self.strings(&given.compute);
        step.cached = self.strings(&given.cached);
        step.on = self.strings(&given.on);
        step.work = self.strings(&given.work);
        let numbers = [
            &mut step.bytes,
            &mut step.arrived,
            &mut step.batch,
            &mut step.to,
            &mut step.wait,
            &mut step.time,
            &mut step.rate,
            &mut step.operations,
            &mut step.repeat,
            &mut step.probability,
        ];
        // Without a break: each of them is to be substituted.
        let changed = numbers.into_iter().fold(false, |changed, number| self.number(number) | changed);
        if changed {
            step.chosen = Some(self.label.clone());
        }
        let lists = [
            &mut step.background,
            &mut step.steps,
            &mut step.hit,
            &mut step.miss,
            &mut step.then,
            &mut step.otherwise,
        ];
        for list in lists.into_iter().flatten() {
            *list = self.steps(list);
        }
        for list in step.parallel.iter_mut().flatten() {
            *list = self.steps(list);
        }
        step
    }

    fn alternative(&self, given: &RawAlternative) -> RawAlternative {
        let mut changed = given.clone();
        changed.code = self.strings(&given.code);
        self.number(&mut changed.hit_ratio);
        changed.description = given.description.clone();
        let lists = [
            &mut changed.background,
            &mut changed.request,
            &mut changed.read,
            &mut changed.update,
            &mut changed.insert,
            &mut changed.scan,
            &mut changed.readmodifywrite,
        ];
        for list in lists.into_iter().flatten() {
            *list = self.steps(list);
        }
        changed
    }
}

/// Choices as a file gives them, in its order.
type Given<'f> = Vec<(&'f String, &'f Spanned<RawChoice>)>;

fn in_order(given: &BTreeMap<String, Spanned<RawChoice>>) -> Given<'_> {
    let mut all: Given<'_> = given.iter().collect();
    all.sort_by_key(|(_, values)| values.span().start);
    all
}

impl Resolver<'_> {
    /// The values of a choice, in the file's order.
    fn values(
        &self,
        name: &str,
        given: &Spanned<RawChoice>,
    ) -> Result<Vec<Spanned<toml::Value>>, miette::Report> {
        let text = match given.get_ref() {
            RawChoice::Listed(values) => return Ok(values.clone()),
            RawChoice::Range(text) => text,
        };
        let refuse = |message: String, help: &str| Err(self.error(message, help, given.span()));
        let (ends, step) = match text.split_once(" by ") {
            Some((ends, step)) => (ends, step.trim()),
            None => (text.as_str(), "1"),
        };
        let whole = |text: &str| text.trim().parse::<u32>().ok();
        let ends = ends.split_once("..").and_then(|(low, high)| Some((whole(low)?, whole(high)?)));
        let (Some((low, high)), Some(step)) = (ends, whole(step)) else {
            return refuse(
                format!("\"{text}\" is not a range that the choice `{name}` can take"),
                "write whole numbers with both ends, as in \"1..190\" or \"1..190 by 8\"; other values stand in a list, as \
                 in `[\"soc\", \"host\"]`",
            );
        };
        if high < low {
            return refuse(
                format!("the range {text} of the choice `{name}` holds nothing: {high} is less than {low}"),
                &format!("write the lower end first, as in \"{high}..{low}\""),
            );
        }
        if step == 0 {
            return refuse(
                format!("the range {text} of the choice `{name}` never goes on: its step is 0"),
                &format!("write \"{low}..{high}\", or a step of 1 or more"),
            );
        }
        // Both ends are of the range, whatever the step.
        let count = u64::from((high - low).div_ceil(step)) + 1;
        if count as usize > MOST_EXPANDED {
            let wider = (high - low).div_ceil(MOST_EXPANDED as u32 - 1);
            return refuse(
                format!(
                    "the range {text} of the choice `{name}` holds {count} values, and {MOST_EXPANDED} at most are taken"
                ),
                &format!("write \"{low}..{high} by {wider}\", or a narrower range"),
            );
        }
        let stepped = (low..high).step_by(step as usize).chain([high]);
        Ok(stepped.map(|value| Spanned::new(given.span(), toml::Value::Integer(value.into()))).collect())
    }

    /// The values of a choice, each with whether it is open: all are, or the one that the user fixed it to.
    fn open_values(
        &self,
        name: &str,
        given: &Spanned<RawChoice>,
    ) -> Result<Vec<(toml::Value, bool)>, miette::Report> {
        let refuse = |message: String, help: &str, at: Range<usize>| Err(self.error(message, help, at));
        if !is_name(name) {
            return refuse(
                format!("`{name}` is not a name for a choice"),
                "use letters, digits, `_` and `-`, as in `processor`",
                given.span(),
            );
        }
        if name == RECORD || self.file.raw.parameters.contains_key(name) {
            return refuse(
                format!("`{name}` is a choice, and the name of a parameter too"),
                "give one of them another name",
                given.span(),
            );
        }
        let all = self.values(name, given)?;
        let mut seen = BTreeSet::new();
        for value in &all {
            let text = text_of(value.get_ref());
            if let Some((low, high)) = text.split_once("..").filter(|_| value.get_ref().is_str()) {
                return refuse(
                    format!(
                        "{} is no value of the choice `{name}`: a range stands by itself",
                        value.get_ref()
                    ),
                    &format!("write `{name} = \"{low}..{high}\"`, without a list"),
                    value.span(),
                );
            }
            let is_number_or_text = matches!(
                value.get_ref(),
                toml::Value::String(_) | toml::Value::Integer(_) | toml::Value::Float(_)
            );
            if !is_number_or_text
                || text.trim().is_empty()
                || text.contains(['{', '}', '[', ']', ',', '='])
                || Written::is_interval(&text)
            {
                return refuse(
                    format!("{} is not a value that the choice `{name}` can take", value.get_ref()),
                    "write names and numbers with their units, as in `[\"soc\", \"host\"]` or `[1, 16]`",
                    value.span(),
                );
            }
            if !seen.insert(text.clone()) {
                return refuse(
                    format!("the choice `{name}` has the value {text} twice"),
                    "write each value once",
                    value.span(),
                );
            }
        }
        if all.is_empty() {
            return refuse(
                format!("the choice `{name}` has no values"),
                "write those that may be taken, as in `[\"soc\", \"host\"]`",
                given.span(),
            );
        }
        let fixed = self.file.changes.parameters.get(name).map(|fixed| fixed.trim());
        let is_open = |value: &toml::Value| fixed.is_none_or(|fixed| text_of(value) == fixed);
        let values: Vec<(toml::Value, bool)> = all
            .into_iter()
            .map(Spanned::into_inner)
            .map(|value| {
                let is_open = is_open(&value);
                (value, is_open)
            })
            .collect();
        if let Some(fixed) = fixed.filter(|_| values.iter().all(|(_, is_open)| !is_open)) {
            let known = match given.get_ref() {
                RawChoice::Range(text) => format!("a value of {text}"),
                RawChoice::Listed(_) => {
                    let known: Vec<String> = values.iter().map(|(value, _)| text_of(value)).collect();
                    format!("one of {}", known.join(", "))
                }
            };
            return Err(miette::miette!(
                help = format!("use {known}"),
                "the choice `{name}` of the design `{}` has no value {fixed}",
                self.file.raw.design.name
            ));
        }
        Ok(values)
    }

    /// Whether a name is that of a choice of the design.
    pub(super) fn is_choice(&self, name: &str) -> bool {
        let raw = &self.file.raw;
        let own = raw.alternative.iter().any(|one| one.get_ref().choose.contains_key(name));
        own || raw.choose.contains_key(name)
    }

    /// An alternative once for each combination of the values of its choices.
    pub(super) fn expanded(
        &self,
        given: &RawAlternative,
        base: &RawAlternative,
    ) -> Result<Vec<Expanded>, miette::Report> {
        let probe = Substitution::default();
        probe.alternative(given);
        probe.alternative(base);
        let met = probe.met.into_inner();
        let own = if given.choose.is_empty() { &base.choose } else { &given.choose };
        let for_all = &self.file.raw.choose;
        let name = given.name.get_ref();
        for (choice, values) in own {
            if for_all.contains_key(choice) {
                return Err(self.error(
                    format!("`{choice}` of `{name}` is a choice of the whole deployment too"),
                    "keep it under [choose] where all requests have one value, else here",
                    values.span(),
                ));
            }
            if !met.contains_key(choice) {
                return Err(self.error(
                    format!("no step of `{name}` says `{{{choice}}}`: every value of the choice would be the same"),
                    "write it in braces where a step names an endpoint or gives a number, as in \"client-{processor}\"",
                    values.span(),
                ));
            }
        }
        if let Some((unknown, at)) =
            met.iter().find(|(met, _)| !own.contains_key(*met) && !for_all.contains_key(*met))
        {
            return Err(self.error(
                format!("`{{{unknown}}}` of `{name}` is not a choice"),
                format!("add `choose = {{ {unknown} = [ ... ] }}` to the alternative, or `{unknown} = [ ... ]` under [choose]"),
                at.clone(),
            ));
        }
        self.mentioned.borrow_mut().extend(met.keys().cloned());
        let mentioned = in_order(for_all).into_iter().filter(|(choice, _)| met.contains_key(*choice));
        let choices: Given<'_> = in_order(own).into_iter().chain(mentioned).collect();
        let open: Vec<Vec<(toml::Value, bool)>> = choices
            .iter()
            .map(|(choice, values)| self.open_values(choice, values))
            .collect::<Result<_, miette::Report>>()?;
        let mut taken: Vec<(Vec<(&str, &toml::Value)>, bool)> = vec![(Vec::new(), true)];
        for ((choice, values), all) in choices.iter().zip(&open) {
            let count = taken.len().saturating_mul(all.len());
            if count > MOST_EXPANDED {
                return Err(self.error(
                    format!("the choices of `{name}` make {count} alternatives or more of it, and {MOST_EXPANDED} at most are planned"),
                    format!("give `{choice}` fewer values, or fix it by `--parameter {choice}={}`", all.first().map_or_else(String::new, |(value, _)| text_of(value))),
                    values.span(),
                ));
            }
            taken = taken
                .iter()
                .flat_map(|(before, is_kept)| {
                    all.iter().map(move |(value, is_open)| {
                        let with = before.iter().copied().chain([(choice.as_str(), value)]).collect();
                        (with, *is_kept && *is_open)
                    })
                })
                .collect();
        }
        let mut expanded = Vec::new();
        for (values, is_open) in taken {
            let said: Vec<String> =
                values.iter().map(|(choice, value)| format!("{choice}={}", text_of(value))).collect();
            let label = if said.is_empty() { String::new() } else { format!("[{}]", said.join(", ")) };
            let own_name = format!("{name}{label}");
            let is_passed_over = !label.is_empty() && self.only.is_some_and(|only| !only.contains(&own_name));
            if !is_open || is_passed_over {
                self.passed_over.borrow_mut().insert(own_name);
                continue;
            }
            let substitution =
                Substitution { values: values.iter().copied().collect(), label, ..Substitution::default() };
            expanded.push(Expanded {
                name: own_name,
                given: substitution.alternative(given),
                base: substitution.alternative(base),
                choices: values
                    .iter()
                    .map(|(choice, value)| TakenChoice {
                        name: choice.to_string(),
                        value: text_of(value),
                        is_for_all: for_all.contains_key(*choice),
                    })
                    .collect(),
            });
        }
        Ok(expanded)
    }

    /// The numbers that the settings of the design give by a choice.
    pub(super) fn chosen_sets(&self) -> BTreeSet<String> {
        let all = self.file.raw.design.set.iter().map(|set| set.get_ref());
        let by_choice = all.filter(|set| named(set).next().is_some());
        by_choice.map(|set| set_number(set).to_string()).collect()
    }

    /// Whether a choice says how many cores or threads processors have and decides nothing else. What code is seen to do may
    /// go by what else its processor has to do, so that nothing is known of it.
    fn counts_threads(&self, choice: &OpenChoice) -> bool {
        let raw = &self.file.raw;
        let is_count = |set: &str| {
            let number = set_number(set);
            set.split_once('=').is_some_and(|(_, value)| value.trim() == format!("{{{}}}", choice.name))
                && THREAD_COUNTS
                    .iter()
                    .any(|count| number.rsplit_once('.').is_some_and(|(_, own)| own == *count))
        };
        let mut named_in = raw.design.set.iter().map(|set| set.get_ref()).filter(|set| {
            let mut names = named(set);
            names.any(|name| name == choice.name)
        });
        named_in.all(|set| is_count(set))
            && !self.mentioned.borrow().contains(&choice.name)
            && choice.values.iter().all(|value| value.parse::<u64>().is_ok())
            && raw.alternative.iter().all(|one| one.get_ref().code.is_none())
    }

    /// The settings of the design, each choice in them at the first of its open values, and the choices themselves.
    pub(super) fn settings_and_choices(&self) -> Result<(Vec<String>, Vec<OpenChoice>), miette::Report> {
        let raw = &self.file.raw;
        let open = |name: &str, given| -> Result<Vec<toml::Value>, miette::Report> {
            let all = self.open_values(name, given)?.into_iter();
            Ok(all.filter_map(|(value, is_open)| is_open.then_some(value)).collect())
        };
        let of_all: Vec<(&String, Vec<toml::Value>)> = in_order(&raw.choose)
            .into_iter()
            .map(|(name, given)| Ok((name, open(name, given)?)))
            .collect::<Result<_, miette::Report>>()?;
        let values = of_all.iter().map(|(name, open)| (name.as_str(), &open[0])).collect();
        let mut choices = Vec::new();
        let left_open = |name: &String, of: Option<String>, open: &[toml::Value]| OpenChoice {
            name: name.clone(),
            of,
            values: open.iter().map(text_of).collect(),
            in_set: false,
            counts_threads: false,
        };
        choices.extend(of_all.iter().map(|(name, open)| left_open(name, None, open)));
        let substitution = Substitution { values, ..Substitution::default() };
        let mut settings = Vec::new();
        for set in &raw.design.set {
            if let Some(name) = named(set.get_ref()).find(|name| !raw.choose.contains_key(*name)) {
                return Err(self.error(
                    format!("`{{{name}}}` is not a choice of the whole deployment"),
                    format!("add `{name} = [ ... ]` under [choose]"),
                    set.span(),
                ));
            }
            settings.push(substitution.text(set.get_ref(), &set.span()));
        }
        let in_set = substitution.met.into_inner();
        for choice in &mut choices {
            choice.in_set = in_set.contains_key(&choice.name);
            choice.counts_threads = choice.in_set && self.counts_threads(choice);
            if !choice.in_set && !self.mentioned.borrow().contains(&choice.name) {
                return Err(self.error(
                    format!(
                        "nothing of the design says `{{{}}}`: every value of the choice would be the same",
                        choice.name
                    ),
                    "write it in braces in a step of an alternative or in `set`",
                    raw.choose[&choice.name].span(),
                ));
            }
        }
        for one in &raw.alternative {
            let one = one.get_ref();
            for (name, given) in in_order(&one.choose) {
                choices.push(left_open(name, Some(one.name.get_ref().clone()), &open(name, given)?));
            }
        }
        Ok((settings, choices))
    }
}
