//! The answer as data, written while logs are read: figures of a log are more than memory holds.

use super::{ImportRemarkAnswer, ImportRequest, ImportedFigureAnswer, ImportedFileAnswer, import_each};
use crate::SCHEMA_VERSION;
use offpath_logs::LogItem;
use offpath_terminal::failure::Failure;
use serde::ser::{Error, SerializeSeq, SerializeStruct};
use serde::{Serialize, Serializer};
use std::cell::{Cell, RefCell};

/// Remarks that are kept while figures are written; where there are more, files are read again for them.
const MOST_REMARKS: usize = 10_000;

/// An [`ImportAnswer`](super::ImportAnswer) that reads its logs while it is serialised.
pub struct ImportStream<'a> {
    request: &'a ImportRequest,
    files: RefCell<Vec<ImportedFileAnswer>>,
    remarks: RefCell<Vec<ImportRemarkAnswer>>,
    /// Whether there are more remarks than were kept.
    has_more_remarks: Cell<bool>,
    has_figures: Cell<bool>,
    failure: RefCell<Option<Failure>>,
}

impl<'a> ImportStream<'a> {
    /// The answer of a request.
    pub fn new(request: &'a ImportRequest) -> ImportStream<'a> {
        ImportStream {
            request,
            files: RefCell::default(),
            remarks: RefCell::default(),
            has_more_remarks: Cell::new(false),
            has_figures: Cell::new(false),
            failure: RefCell::default(),
        }
    }

    /// Whether a line had a figure, after it was serialised.
    ///
    /// # Errors
    /// Where a log could not be read.
    pub fn has_figures(self) -> Result<bool, Failure> {
        self.failure.into_inner().map_or(Ok(self.has_figures.get()), Err)
    }

    /// Writes a list of what `each` makes of the items of the logs.
    fn list<S: Serializer, T: Serialize>(
        &self,
        serializer: S,
        each: impl Fn(&str, LogItem) -> Option<T>,
    ) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        let mut error = None;
        let read = import_each(self.request, |file, item| {
            if let Some(own) = each(file, item)
                && let Err(why) = list.serialize_element(&own)
            {
                error = Some(why);
                return Err(Failure::input("the answer is not written on", ""));
            }
            Ok(())
        });
        match (read, error) {
            (_, Some(error)) => Err(error),
            (Err(failure), None) => {
                *self.failure.borrow_mut() = Some(failure);
                Err(S::Error::custom("a log cannot be read"))
            }
            (Ok(files), None) => {
                *self.files.borrow_mut() = files;
                list.end()
            }
        }
    }
}

impl Serialize for ImportStream<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut answer = serializer.serialize_struct("ImportAnswer", 4)?;
        answer.serialize_field("schema_version", &SCHEMA_VERSION)?;
        answer.serialize_field("measurements", &Figures(self))?;
        answer.serialize_field("remarks", &Remarks(self))?;
        answer.serialize_field("files", &*self.files.borrow())?;
        answer.end()
    }
}

/// The figures; remarks are kept meanwhile.
struct Figures<'a, 'b>(&'a ImportStream<'b>);

impl Serialize for Figures<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let stream = self.0;
        // Standard input cannot be read again.
        let is_read_once = stream.request.logs.iter().any(|log| log.as_os_str() == "-");
        stream.list(serializer, |file, item| match item {
            LogItem::Measurement(figure) => {
                stream.has_figures.set(true);
                Some(ImportedFigureAnswer::of(file, &figure))
            }
            LogItem::Remark(remark) => {
                let mut remarks = stream.remarks.borrow_mut();
                match is_read_once || remarks.len() < MOST_REMARKS {
                    true => remarks.push(ImportRemarkAnswer::of(file, remark)),
                    false => stream.has_more_remarks.set(true),
                }
                None
            }
        })
    }
}

struct Remarks<'a, 'b>(&'a ImportStream<'b>);

impl Serialize for Remarks<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let stream = self.0;
        if !stream.has_more_remarks.get() {
            return stream.remarks.borrow().serialize(serializer);
        }
        stream.list(serializer, |file, item| match item {
            LogItem::Remark(remark) => Some(ImportRemarkAnswer::of(file, remark)),
            LogItem::Measurement(_) => None,
        })
    }
}
