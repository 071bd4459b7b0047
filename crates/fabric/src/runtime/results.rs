//! What the roles of a run returned.

use crate::{LocalBoxFuture, Outcome, RoleEnd, RoleName};
use std::cell::RefCell;
use std::rc::Rc;

/// A place for the result of each role.
pub struct Results<T>(Rc<RefCell<Vec<Option<T>>>>);

impl<T: 'static> Results<T> {
    /// Places for `count` roles.
    pub fn new(count: usize) -> Results<T> {
        Results(Rc::new(RefCell::new((0..count).map(|_| None).collect())))
    }

    /// A task that keeps what the function of role `index` returns.
    pub fn keep(&self, index: usize, function: LocalBoxFuture<T>) -> LocalBoxFuture<()> {
        let results = self.0.clone();
        Box::pin(async move {
            let value = function.await;
            results.borrow_mut()[index] = Some(value);
        })
    }

    /// How the roles ended; those without a result as `unfinished` says of their number.
    pub fn outcomes<'a>(
        self,
        names: impl Iterator<Item = &'a RoleName>,
        unfinished: impl Fn(usize) -> RoleEnd<T>,
    ) -> Vec<Outcome<T>> {
        let values = self.0.take().into_iter().enumerate();
        let outcome = |(name, (index, value)): (&RoleName, (usize, Option<T>))| Outcome {
            name: name.clone(),
            end: value.map_or_else(|| unfinished(index), RoleEnd::Finished),
        };
        names.zip(values).map(outcome).collect()
    }
}
