//! What each command of offpath answers, as data: types whose fields name their units, and the calls that fill them from
//! a request. Beside each stand its views, functions of the answer alone: a page of text for a [`Screen`], which is
//! tables or Markdown, and a [`report::Page`], which is HTML.
//!
//! An answer serialises to the JSON that the command prints, and docs/schemas is generated from its type:
//! `UPDATE_SCHEMAS=1 cargo test --release -p offpath-answers schemas` writes the files.
//!
//! [`Screen`]: offpath_terminal::output::Screen

mod advice;
mod by_name;
pub mod calibrate;
pub mod check;
mod choices;
mod command;
pub mod compare;
pub mod device;
pub mod diagnose;
pub mod explain;
pub mod export;
mod figures;
mod file_names;
pub mod fit;
pub mod import;
pub mod machine;
pub mod measure;
mod measured;
pub mod path;
pub mod plan;
pub mod report;
pub mod reproduce;
mod rows;
pub mod run;
#[cfg(test)]
mod schemas;
mod sparkline;
pub mod sweep;
pub mod system;
pub mod tool;
pub mod torture;
pub mod watch;
pub mod whatif;

pub use advice::{AdviceAnswer, BringsAnswer, BunchedAnswer, FullestAnswer, GainAnswer};
pub use by_name::ByName;
pub use calibrate::calibrate;
pub use check::check;
pub use choices::{ChoiceAnswer, ChoicesAnswer, LeftOutAnswer};
pub use command::not_of_the_file;
pub use compare::compare;
pub use device::device;
pub use diagnose::diagnose;
pub use explain::explain;
pub use figures::{Goal, Throughput, Throughputs, Unit};
pub use fit::fit;
pub use import::import;
pub use offpath_terminal::failure::Failure;
pub use offpath_terminal::options::SystemOptions;
pub use offpath_terminal::output::SCHEMA_VERSION;
pub use path::path;
pub use plan::plan;
pub use reproduce::reproduce;
pub use sweep::sweep;
pub use tool::tool;
pub use torture::torture;
pub use watch::watch;
pub use whatif::whatif;

use offpath_plan::Setting;

/// The systems that a design runs on.
pub(crate) fn setting(system: &SystemOptions) -> Result<Setting, Failure> {
    Ok(Setting {
        overlays: system.overlay.clone(),
        settings: system.set.clone(),
        testbed: system.testbed.clone(),
        mode: system.mode.clone(),
        ..Setting::plain(system.library()?)
    })
}
