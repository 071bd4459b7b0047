//! Every test of the planner but those of the house in one program: one each would link the planner twenty times.

mod advice;
mod awkward;
mod choices;
mod common;
mod confidence;
mod devices;
mod estimates;
mod generated;
mod golden;
mod implemented;
mod invented;
mod nodes;
mod numbers;
mod shapes;
mod study;
mod tails;
mod traffic;
mod twin;
mod whatif;
mod work;
