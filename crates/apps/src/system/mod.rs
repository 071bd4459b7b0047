//! What a system is: a folder of this crate that declares itself and says how it is followed, run, served
//! and put under faults. docs/adding-a-system.md walks through one.

mod declare;
mod follow;
mod page;
mod run;
mod values;

pub use declare::{
    About, Bounds, Choice, CommandUsage, DeclaredAlternative, DeclaredCacheUse, Key, KeyKind, Of, Template,
};
pub use follow::{Asked, Course, Follow, FollowedCode, PATIENCE, REQUESTS};
pub use page::{Block, Cell, RunPage, RunTable};
pub use run::{
    Act, Answered, BackendKind, BackendReport, CONNECTION_HELP, Gave, LOCAL_ENGINE, MeasuredSpan, Parts,
    Refusal, Roles, RunSetting, Said, Serve, SystemRun,
};
pub use values::{Given, GivenValue, Kept, OptionKind, role_name, role_text};

use crate::torture::Trial;

/// A system that is planned, run, served and put under faults by what it says here.
pub trait AppSystem: 'static {
    /// What it declares.
    const ABOUT: &'static About;
    /// How a request of its code is followed.
    type Code: FollowedCode;
    /// How its users run.
    type Run: SystemRun;
    /// How its other roles are served.
    type Serve: Serve;
    /// How it is put under faults.
    type Trial: Trial;
}

/// Something that is done with a system that is known by its name alone.
pub trait Visitor {
    /// What that gives.
    type Out;

    /// Does it.
    fn visit<S: AppSystem>(self) -> Self::Out;
}

/// Systems by name; made by [`systems!`](crate::systems).
pub trait Registry: 'static {
    /// What they declare, in their order.
    fn all() -> Vec<&'static About>;

    /// Visits the system of a name; `None` where there is none.
    fn with<V: Visitor>(name: &str, visitor: V) -> Option<V::Out>;
}

/// Declares a [`Registry`]: `systems! { /// The list. pub Mine: kv::Store, my::System }`.
#[macro_export]
macro_rules! systems {
    ($(#[$meta:meta])* $visibility:vis $registry:ident: $($system:ty),+ $(,)?) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        $visibility enum $registry {}

        impl $crate::system::Registry for $registry {
            fn all() -> Vec<&'static $crate::system::About> {
                vec![$(<$system as $crate::system::AppSystem>::ABOUT),+]
            }

            fn with<V: $crate::system::Visitor>(name: &str, visitor: V) -> Option<V::Out> {
                $(if name == <$system as $crate::system::AppSystem>::ABOUT.name {
                    return Some(visitor.visit::<$system>());
                })+
                None
            }
        }
    };
}
