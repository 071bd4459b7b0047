//! Every test of the command line in one program: one each would link the whole house a dozen times.

mod calibrate;
mod command_line;
mod common;
mod export;
mod folder;
mod import;
mod machine;
mod malformed;
mod measure;
mod report;
mod threads;
mod torture;
mod watch;
