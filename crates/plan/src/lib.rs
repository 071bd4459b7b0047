//! Plans: from a design file to the best mix of its alternatives.
//!
//! A design's alternatives are step lists, or applications whose code is followed on the twin and gives
//! such a list ([`implemented`]). They are compiled to programs ([`program`]), run on the
//! twin to observe what they demand, and combined by linear programming ([`planner`]).

pub mod advice;
pub mod check;
pub mod choices;
pub mod comparison;
pub mod confidence;
pub mod design;
pub mod estimate;
pub mod factor;
pub mod implemented;
pub mod interpret;
pub mod known;
pub mod observe;
pub mod planner;
pub mod program;
pub mod published;
pub mod residual;
pub mod rests;
pub mod sample;
pub mod shipped;
pub mod side_by_side;
pub mod solve;
pub mod study;
pub mod traffic;
pub mod whatif;

pub use confidence::{Influence, Mechanism, Ranged};
pub use design::{Changes, Design, DesignError, Objective, Rank, Runs};
pub use estimate::{Estimate, Share};
pub use planner::{Alone, Mix, Plan, PlanError, Ready, Setting, plan, prepare, prepare_named};
pub use program::{Compiled, Fold};
pub use rests::{Basis, Rest};
