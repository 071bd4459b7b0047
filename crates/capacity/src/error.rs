//! What can be wrong with a problem, or with what is asked of it.

/// Why no mix could be given. Each text names the thing, its value, the bound and a next step.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CapacityError {
    /// There is nothing to choose from.
    #[error("the problem has no activities; add at least one")]
    Empty,
    /// A name stands for two things of one kind.
    #[error("{kind} `{name}` is given twice; give each its own name")]
    Duplicate {
        /// `station`, `pool`, `activity`, or `greedy step`.
        kind: &'static str,
        /// The name found twice.
        name: String,
    },
    /// A name that nothing carries.
    #[error("{user} names {kind} `{name}`, which the problem does not have; add it or correct the name")]
    Unknown {
        /// Who uses the name.
        user: String,
        /// `station`, `pool`, `activity`, or `resource`.
        kind: &'static str,
        /// The unknown name.
        name: String,
    },
    /// A number outside its range.
    #[error("{thing} is {value}, but must be {bound}; correct it")]
    OutOfRange {
        /// What the number describes.
        thing: String,
        /// The number given.
        value: f64,
        /// The range, in words.
        bound: &'static str,
    },
    /// Nothing stops an activity's rate from growing.
    #[error(
        "no station, pool, limit or greatest rate bounds activity `{activity}`; \
         give it a demand or a greatest rate"
    )]
    Unbounded {
        /// One activity that can grow without end.
        activity: String,
    },
    /// The load asked for is more than any mix carries.
    #[error(
        "a load of {} is more than any mix carries: {} full at {}; lower the load or add capacity there",
        rate(*load), full(binding), rate(*greatest)
    )]
    LoadTooHigh {
        /// The load asked for, in requests per second.
        load: f64,
        /// The greatest load that any mix carries, in requests per second.
        greatest: f64,
        /// What is full at the greatest load.
        binding: Vec<String>,
    },
    /// Some constraints exclude each other.
    #[error("no mix satisfies {} together; relax one of them", constraints.join(" and "))]
    Infeasible {
        /// Constraints that cannot hold together.
        constraints: Vec<String>,
    },
    /// The solver found no answer that passes the check of its own result.
    #[error(
        "the linear program did not converge ({status}); look for demands or amounts many powers of ten apart"
    )]
    NotConverged {
        /// What the solver said last.
        status: String,
    },
}

/// Requests per second with three to five digits.
fn rate(per_second: f64) -> String {
    match per_second {
        r if r >= 1e6 => format!("{:.2} M requests/s", r / 1e6),
        r if r >= 1e3 => format!("{:.2} k requests/s", r / 1e3),
        r => format!("{r:.2} requests/s"),
    }
}

fn full(names: &[String]) -> String {
    let verb = if names.len() == 1 { "is" } else { "are" };
    format!("{} {verb}", names.join(" and "))
}
