//! What keys, kinds and tables of profiles were called before, so that who writes an old name is told the new one.

use crate::schema::Kind;

/// Keys, old and new. A key that only one kind of table renamed names it.
const KEYS: &[(Option<Kind>, &str, &str)] = &[
    (Some(Kind::Endpoint), "memory", "capacity"),
    (None, "contexts", "inflight_slots"),
    (None, "reserved_contexts", "reserved_inflight_slots"),
    (None, "write_context_time", "write_slot_time"),
    (None, "receive_context_time", "receive_slot_time"),
    (None, "list_time", "batch_fixed_time"),
    (None, "listed_time", "batch_per_wqe_time"),
    (None, "read_path_rate", "inbound_read_rate"),
];

/// Words of headers, kinds of tables, and profiles.
const NAMES: &[(&str, &str)] =
    &[("rivals", "variants"), ("stall", "large-transfer-limit"), ("no-read-path", "no-inbound-read-limit")];

/// Tables of shipped profiles, as numbers name them.
const TABLES: &[(&str, &str)] = &[
    ("stall_client_soc", "large_transfers_client_soc"),
    ("stall_soc_host", "large_transfers_soc_host"),
    ("stall_host_soc", "large_transfers_host_soc"),
];

/// What a key of a table is called now.
pub(crate) fn key(kind: Kind, old: &str) -> Option<&'static str> {
    let is_it =
        |(of, before, _): &&(Option<Kind>, &str, &str)| of.is_none_or(|of| of == kind) && *before == old;
    KEYS.iter().find(is_it).map(|(_, _, now)| *now).filter(|now| kind.keys().any(|key| key.name == *now))
}

/// What a word, a kind or a profile is called now.
pub(crate) fn word(old: &str) -> Option<&'static str> {
    NAMES.iter().find(|(before, _)| *before == old).map(|(_, now)| *now)
}

/// What a number, or a pattern of numbers, is called now; `None` where it was never called otherwise.
pub(crate) fn number(old: &str) -> Option<String> {
    moved(old, |(before, now)| (before, now))
}

/// What a number was called first. Draws of joint samples are named by it, so that a new name moves no interval.
pub fn first_name(name: &str) -> String {
    moved(name, |(before, now)| (now, before)).unwrap_or_else(|| name.to_string())
}

fn moved(
    name: &str,
    turned: impl Fn((&'static str, &'static str)) -> (&'static str, &'static str),
) -> Option<String> {
    let (component, key) = name.rsplit_once('.')?;
    let keys = KEYS.iter().filter(|(of, ..)| of.is_none()).map(|(_, before, now)| turned((before, now)));
    let other_key = keys.into_iter().find(|(from, _)| *from == key).map(|(_, to)| to);
    let tables = TABLES.iter().map(|(before, now)| turned((before, now)));
    let other =
        tables.into_iter().find_map(|(from, to)| Some(component.strip_suffix(from)?.to_string() + to));
    if other_key.is_none() && other.is_none() {
        return None;
    }
    Some(format!("{}.{}", other.as_deref().unwrap_or(component), other_key.unwrap_or(key)))
}
