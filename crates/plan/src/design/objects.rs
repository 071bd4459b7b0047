//! Objects in memory, and the cache that keeps some of them.

use super::resolve::{Read, Resolver};
use super::{CacheUse, ObjectAccess, Objects};
use offpath_quantity::Bytes;
use std::collections::BTreeMap;
use toml::Spanned;

impl Resolver<'_> {
    /// The objects, and what the cache keeps of them.
    pub(super) fn read_objects(&mut self) -> Result<Objects, miette::Report> {
        let mut accesses = BTreeMap::new();
        let popularity = &self.file.popularity;
        let mut entries = BTreeMap::new();
        for (name, raw) in &self.file.raw.object {
            let Some(popularity) = popularity else {
                return Err(self.error(
                    format!("object `{name}` needs a workload to be accessed by"),
                    "add [workload] with a YCSB property file",
                    raw.span(),
                ));
            };
            let object = raw.get_ref();
            let (entry, mut sized) = self.bytes(&format!("object.{name}.entry"), &object.entry)?;
            let per_entry = object.records_per_entry.unwrap_or(1).max(1);
            let count = popularity.record_count().div_ceil(per_entry);
            let (copies, copied) = (object.copies.unwrap_or(1).max(1), object.copied.unwrap_or(0));
            // An entry of several records is at least as hot as its hottest one.
            let hottest = if copied == 0 {
                popularity.share_of_rank(0)
            } else {
                (popularity.share_of_rank(0) / copies as f64).max(popularity.share_of_rank(copied))
            };
            let spacing = match &object.spacing {
                None => entry,
                Some(given) => {
                    let (spacing, read) = self.bytes(&format!("object.{name}.spacing"), given)?;
                    sized = sized.and(&read);
                    if spacing < entry {
                        return Err(self.error(
                            format!("entries of {entry} in `{name}` overlap when they start every {spacing}"),
                            format!("use {entry} or more, or leave `spacing` out"),
                            given.span(),
                        ));
                    }
                    spacing
                }
            };
            let Some(size) = spacing.get().checked_mul(count) else {
                return Err(self.error(
                    format!("{count} entries of {spacing} are more bytes than 64 bits count"),
                    "use a smaller entry or fewer records",
                    object.entry.span(),
                ));
            };
            let size = Bytes::new(size);
            entries.insert(name.clone(), (spacing, count, sized));
            accesses.insert(
                name.clone(),
                ObjectAccess { size, entry, entries: count, spacing, copies, copied, hottest },
            );
        }
        let Some(raw) = &self.file.raw.cache else { return Ok((accesses, None)) };
        let cache = raw.get_ref();
        let (budget, mut rests) = self.bytes("cache.budget", &cache.budget)?;
        let mut whole = 0u64;
        for name in &cache.whole {
            let Some(access) = accesses.get(name.get_ref()) else {
                return Err(self.unknown_object(name));
            };
            let Some(sum) = whole.checked_add(access.size.get()) else {
                return Err(self.error(
                    "the objects that the cache keeps whole are more bytes than 64 bits count",
                    "use smaller entries or fewer records, or take an object out of `whole`",
                    name.span(),
                ));
            };
            whole = sum;
            rests = rests.and(&entries[name.get_ref()].2);
        }
        let Some((entry, of, sized)) = entries.get(cache.hottest.get_ref()) else {
            return Err(self.unknown_object(&cache.hottest));
        };
        let (entry, of) = (*entry, *of);
        if whole > budget.get() {
            return Err(self.error(
                format!(
                    "the objects {} need {}, and the budget at `{}` is {budget}",
                    cache
                        .whole
                        .iter()
                        .map(|name| format!("`{}`", name.get_ref()))
                        .collect::<Vec<_>>()
                        .join(", "),
                    Bytes::new(whole),
                    cache.at.get_ref()
                ),
                "raise the budget, use fewer records, or take an object out of `whole`",
                cache.budget.span(),
            ));
        }
        let fit = ((budget.get() - whole) / entry.get().max(1)).min(of);
        let hit_ratio = popularity.as_ref().map_or(0.0, |popularity| popularity.share_of_top(fit));
        let cache_use = CacheUse {
            at: cache.at.get_ref().clone(),
            budget,
            whole: Bytes::new(whole),
            object: cache.hottest.get_ref().clone(),
            entries: fit,
            of,
            hit_ratio,
            at_span: cache.at.span(),
            budget_span: cache.budget.span(),
        };
        self.hit_ratio = Some(Read { base: hit_ratio, ..rests.and(sized) });
        self.cache_object = Some(cache_use.object.clone());
        Ok((accesses, Some(cache_use)))
    }

    pub(super) fn unknown_object(&self, name: &Spanned<String>) -> miette::Report {
        let known: Vec<&str> = self.file.raw.object.keys().map(String::as_str).collect();
        self.error(
            format!("`{}` is not an object of this design", name.get_ref()),
            match known.is_empty() {
                true => format!("describe it under [object.{}]", name.get_ref()),
                false => {
                    format!(
                        "describe it under [object.{}], or use one of: {}",
                        name.get_ref(),
                        known.join(", ")
                    )
                }
            },
            name.span(),
        )
    }
}
