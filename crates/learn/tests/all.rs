//! Every test of learning in one program, whose long ones then run beside each other.

mod calibrate;
mod describe;
mod diagnose;
mod dma;
mod expect;
mod forms;
mod threads;
mod watch;
