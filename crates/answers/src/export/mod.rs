//! What `offpath export` writes: answers and logs as one table, and what a profile determines of UCX's configuration.

mod table;
mod ucx;

pub use table::{AnswerTable, TableForm};
pub use ucx::{UcxAnswer, UcxKeyAnswer, UcxLeftOutAnswer, UcxRequest, ucx};
