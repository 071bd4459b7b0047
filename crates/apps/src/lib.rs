//! Complete systems, written once to the [fabric](offpath_fabric) and run in every backend.
//!
//! Each is a folder that says everything of itself by the trait [`AppSystem`](system::AppSystem): [`kv`] is a
//! disaggregated key-value store, [`replog`] a replicated log. [`Shipped`] lists them, and planning, running,
//! serving and [`torture`] find them there. No module knows its backend: where an optional part of a platform
//! is missing, the alternative that needs it is refused by a named error and never emulated.
#![allow(async_fn_in_trait, reason = "futures are !Send by contract, so no caller needs the bound")]

mod alive;
mod bytes;
pub mod kv;
mod outbox;
mod pool;
pub mod replog;
mod stop;
pub mod system;
pub mod torture;

pub use bytes::{hash, is_value_of, value_of};
pub use stop::Stop;

systems! {
    /// The systems that are shipped: a new one is listed here, and nowhere else.
    pub Shipped: kv::Kv, replog::Replog
}

#[cfg(test)]
mod tests {
    use crate::system::{About, Given, Of, Registry};
    use crate::{Shipped, kv, replog};
    use std::fmt::Debug;

    /// `NoVersionCheck` as `no-version-check`.
    fn kebab(name: &impl Debug) -> String {
        let mut text = String::new();
        for letter in format!("{name:?}").chars() {
            if letter.is_uppercase() && !text.is_empty() {
                text.push('-');
            }
            text.extend(letter.to_lowercase());
        }
        text
    }

    fn bugs(about: &About, injected_bug: &[impl Debug]) {
        assert_eq!(about.bugs, injected_bug.iter().map(kebab).collect::<Vec<_>>(), "{}", about.name);
    }

    #[test]
    fn what_is_declared_is_what_the_code_has() {
        bugs(&kv::ABOUT, &kv::StoreBug::ALL);
        bugs(&replog::ABOUT, &replog::LogBug::ALL);
        let labels = kv::Placement::ALL.map(kv::Placement::label);
        assert_eq!(labels, ["A1", "A2", "A3", "A4", "A5-read", "A5-send"]);
        assert!(labels.into_iter().eq(kv::ABOUT.labels()));
        let labels = replog::LogAlternative::ALL.map(replog::LogAlternative::label);
        assert_eq!(labels, ["A1", "A2", "A3", "A2+A3"]);
        assert!(labels.into_iter().eq(replog::ABOUT.labels()));
    }

    #[test]
    fn declarations_are_sound() {
        let page = include_str!("../../../docs/applications.md");
        for about in Shipped::all() {
            for key in about.keys {
                let row = |line: &&str| line.starts_with('|') && line.contains(&format!("`{}`", key.name));
                assert!(page.lines().any(|line| row(&line)), "the page has no `{}`", key.name);
            }
            for of in [Of::Run, Of::Serve] {
                // A default that cannot be read would panic.
                assert!(Given::defaults(about, of) != Given::default(), "{}", about.name);
            }
        }
    }
}
