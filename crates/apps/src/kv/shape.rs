//! The shape of a store that a user asks for, and what its errors lead to.

use super::{Fetch, Home, KvError, Placement, StoreConfig};
use crate::system::{BackendKind, CONNECTION_HELP, Given, Refusal, RunSetting};
use offpath_workload::{ClientOperation, Workload};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The workload.
pub(super) fn workload(given: &Given, setting: &RunSetting<'_>) -> Result<Workload, Refusal> {
    let mut overrides = BTreeMap::new();
    for property in given.all::<String>("property") {
        let Some((key, value)) = property.split_once('=') else {
            let help = "write KEY=VALUE, as in `recordcount=100000`";
            return Err(Refusal::input(format!("--property {property} has no value"), help));
        };
        overrides.insert(key.to_string(), value.to_string());
    }
    let file: PathBuf = given.of("workload");
    let workload = Workload::load(&file).and_then(|file| file.with_overrides(overrides));
    let workload = workload.map_err(|error| Refusal { is_input: true, report: error.into() })?;
    for warning in workload.warnings() {
        (setting.tell)(&format!("warning: {warning}"));
    }
    Ok(workload)
}

/// The placement of an option's value, which is a declared label.
pub(super) fn placement(given: &Given) -> Option<Placement> {
    let label = given.get::<String>("placement")?;
    Some(Placement::labelled(&label).expect("the option reads declared labels alone"))
}

/// The store for a workload that its clients run, by the placement that is named or `otherwise`.
pub(super) fn options(
    given: &Given,
    workload: &Workload,
    otherwise: Placement,
    setting: &RunSetting<'_>,
) -> Result<StoreConfig, Refusal> {
    let one = StoreConfig::of_workload(workload).map_err(failed)?;
    let inserts = workload.operation_count as f64 * workload.mix.share(ClientOperation::Insert);
    let clients: u32 = given.whole("clients");
    // Every client inserts what the workload says, so a store for one is too small for several.
    let all = workload.record_count.saturating_add((inserts * f64::from(clients)).ceil() as u64);
    let records = given.get("records").unwrap_or(all);
    if records > 1 << 31 {
        let help = "choose at most 2147483648 records";
        return Err(Refusal::input(format!("a store has no room for {records} records"), help));
    }
    let mut options =
        StoreConfig { preload: one.preload, ..StoreConfig::sized(records, one.layout.value_bytes) };
    let named = placement(given);
    options.placement = named.unwrap_or(otherwise);
    let (placed, warm) = (options.placement, given.of::<u64>("warm"));
    let cache = given.get::<u64>("cache");
    // Whether placements of a mix go together is said where they are run.
    if named.is_some_and(|placement| placement.index_home() == Home::Host) {
        let no_cache = format!("is of the card's cache, and a store by {placed} has none");
        for (given, option) in [(cache.is_some(), "--cache"), (warm > 0, "--warm")] {
            if given {
                return Err(Refusal::unread(option, &no_cache));
            }
        }
    }
    let fetch = given.get::<String>("fetch");
    if fetch.is_some() && !placed.homes().contains(&Home::Soc) {
        let why = format!("is for the card, and a store by {placed} does not use it");
        return Err(Refusal::unread("--fetch", &why));
    }
    options.layout.key_bytes = given.whole("key-bytes");
    if let Some(slots) = cache {
        options.layout.cache_slots = u32::try_from(slots).expect("the option is bounded");
    }
    if warm > records {
        return Err(Refusal::input(
            format!("{warm} records cannot be warm: the store has room for {records}"),
            "choose a smaller `--warm`",
        ));
    }
    options.warm = workload.hottest_records(warm).into();
    if let Some(patience) = setting.patience {
        options.answer_timeout = patience;
    }
    let key_bytes = options.layout.key_bytes;
    if (1..8).contains(&key_bytes) && records > 1 << (8 * key_bytes) {
        return Err(Refusal::input(
            format!("{records} records have no keys of {key_bytes} B"),
            "choose `--key-bytes 8`, or fewer records",
        ));
    }
    if let Some(engine) = fetch.filter(|alternative| alternative != "rdma") {
        if setting.backend == BackendKind::Verbs {
            return Err(Refusal::input(
                format!("verbs have no DMA engine `{engine}`"),
                "take `--fetch rdma`, or run on the twin",
            ));
        }
        options.fetch = Fetch::Engine(engine);
    }
    Ok(options)
}

/// What a store's error leads to.
pub(super) fn failed(error: KvError) -> Refusal {
    let (is_input, help) = match &error {
        KvError::Mismatch { .. } => (
            true,
            "give both sides the same `--workload`, `--property`, `--records`, `--key-bytes` and `--cache`",
        ),
        KvError::NoStore { .. } | KvError::LayoutVersion { .. } => (true, "check `--connect`"),
        KvError::Shape { .. } => (true, "change `--property`, `--records`, `--key-bytes` or `--warm`"),
        KvError::WrongHome { .. } => {
            (true, "placements of one store have their index on one side: A1 and A2, or A3, A4 and A5")
        }
        KvError::Share { .. } | KvError::KeySize { .. } | KvError::ValueTooLarge { .. } => (true, ""),
        KvError::Unsupported(_) => (true, "choose another `--placement`, `--fetch` or backend"),
        KvError::Region(_) => {
            (true, "make the store smaller: `--records`, `--cache`, `--property fieldlength=`")
        }
        KvError::Full { .. } => (false, "raise `--records` on both sides"),
        KvError::Connect(_) => (false, CONNECTION_HELP),
        _ => (false, "where a device answers late, as an emulated one does, raise `--patience`"),
    };
    Refusal::new(is_input, error, help)
}
