//! The relay alone, for machines that need nothing else of offpath: `offpath-relay CONFIG.toml`.

use offpath_redis::config::Config;
use offpath_redis::relay;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(path), None) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: offpath-relay CONFIG.toml");
        return ExitCode::from(2);
    };
    let done = Config::load(&PathBuf::from(path))
        .map_err(relay::RelayError::from)
        .and_then(|config| relay::run(config, |_| {}));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("offpath-relay: {error}");
            ExitCode::from(2)
        }
    }
}
