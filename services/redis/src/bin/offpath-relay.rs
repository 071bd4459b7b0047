//! The program `offpath-relay`, which `offpath relay` starts: replication taken off a Redis or Valkey master.

use clap::Parser;
use miette::Diagnostic;
use offpath_redis::config::{Acknowledge, Config, ConfigError, User};
use offpath_redis::descriptors;
use offpath_redis::process;
use offpath_redis::relay::{Relay, RelayError};
use offpath_terminal::failure::{BAD_INPUT, Failure};
use offpath_terminal::output::{Color, emit, tell};
use std::net::{TcpListener, ToSocketAddrs};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  offpath relay --master 10.0.0.1:6379 --listen 0.0.0.0:6400 --password-file /etc/offpath/replicas
  offpath relay --config /etc/offpath/relay.toml
  offpath relay --master 127.0.0.1:6379 --listen 127.0.0.1:6400 --state-file /var/lib/offpath/position

Then, at each replica:
  redis-cli -p 6379 REPLICAOF RELAY_HOST 6400

The relay is one replica to the master and the master to any number of replicas. It keeps no data. It ends at SIGTERM, \
once replicas have taken what is left, and reads its file, passwords and certificates again at SIGHUP. Without a password \
it takes connections of its own machine alone. TLS and users are in the configuration file; docs/redis.md describes it.

The master's cost does not grow with the replicas behind the relay. With 1, 3 and 5 of them it took 1.15 to 1.17 times \
the processor time of a master with one replica of its own at 8 clients, and 0.95 to 0.99 times at 50, on a machine that \
did nothing else (docs/performance.md).";

/// Replicate a Redis or Valkey master to many replicas, while the master serves one
#[derive(Clone, Parser, Debug)]
#[command(name = "offpath-relay", version, after_help = EXAMPLES, max_term_width = 100)]
struct Options {
    /// When to use colour; it is never the only cue
    #[arg(long, value_enum, default_value_t)]
    color: Color,
    /// The configuration file; what is given beside it counts more
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The server to relay
    #[arg(long, value_name = "HOST:PORT")]
    master: Option<String>,
    /// Where replicas connect
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<String>,
    /// A file with the password for the master
    #[arg(long, value_name = "FILE")]
    master_password_file: Option<PathBuf>,
    /// A file with the password that replicas have to show, as user `default`
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Bytes of the stream that are kept for replicas that come back [default: 64MiB]
    #[arg(long, value_name = "SIZE")]
    backlog: Option<String>,
    /// Living replicas that must have a write before the relay acknowledges it, or `received` for what no
    /// replica may have [default: 1]
    #[arg(long, value_name = "COUNT")]
    quorum: Option<Acknowledge>,
    /// A directory with room for the master's file, on a disk [default: that of temporary files]
    #[arg(long, value_name = "DIRECTORY")]
    spool: Option<PathBuf>,
    /// Keep the position here, so that a restart costs no full synchronisation
    #[arg(long, value_name = "FILE")]
    state_file: Option<PathBuf>,
    /// Answer `GET /metrics` for Prometheus here
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<String>,
    /// Print a configuration with every key, each explained, and end
    #[arg(long, conflicts_with = "config")]
    example: bool,
    /// Check the configuration with its files and end
    #[arg(long = "check")]
    check_only: bool,
}

impl Options {
    fn check(&self) -> Result<(), Failure> {
        let missing = match (&self.config, &self.master, &self.listen) {
            (Some(_), ..) | (None, Some(_), Some(_)) => return Ok(()),
            (None, None, _) => "--master HOST:PORT",
            (None, Some(_), None) => "--listen ADDRESS:PORT",
        };
        Err(Failure::input(
            format!("`{missing}` is not given, and no configuration file"),
            "give `--master` and `--listen`, or a file with both by `--config FILE`",
        ))
    }

    fn config(&self) -> Result<Config, ConfigError> {
        let mut config = match &self.config {
            Some(path) => Config::load(path)?,
            None => Config::of("", ""),
        };
        if let Some(address) = &self.master {
            config.master.address.clone_from(address);
        }
        if let Some(address) = &self.listen {
            config.listen.address.clone_from(address);
        }
        if let Some(file) = &self.master_password_file {
            config.master.password = None;
            config.master.password_file = Some(file.clone());
        }
        if let Some(file) = &self.password_file {
            config.user.retain(|user| user.name != "default");
            config.user.push(User {
                name: "default".into(),
                password: None,
                password_file: Some(file.clone()),
                may: Default::default(),
            });
        }
        if let Some(size) = &self.backlog {
            config.limits.backlog.clone_from(size);
        }
        config.acknowledge = self.quorum.unwrap_or(config.acknowledge);
        if let Some(directory) = &self.spool {
            config.spool.directory.clone_from(directory);
        }
        config.spool.state_file = self.state_file.clone().or(config.spool.state_file);
        config.metrics.address = self.metrics.clone().or(config.metrics.address);
        Ok(config)
    }
}

/// Tells a service manager that asks for it that the relay listens (`sd_notify`, READY=1). One that does not hear it gives the
/// relay up.
fn tell_systemd() {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let told = UnixDatagram::unbound().and_then(|socket| socket.send_to(b"READY=1", &path));
    if let Err(error) = told {
        tell(&format!("the service manager at {} could not be told: {error}", path.to_string_lossy()));
    }
}

/// Runs the relay until it is told to end.
fn run(options: &Options) -> Result<ExitCode, Failure> {
    if options.example {
        emit(include_str!("../../../../packaging/relay.toml"))?;
        return Ok(ExitCode::SUCCESS);
    }
    options.check()?;
    let config = options.config().map_err(|error| failure(error.into()))?;
    if options.check_only {
        let relay = Relay::new(config).map_err(failure)?;
        let settings = relay.settings();
        descriptors::provide(&settings.config.limits);
        // Whether the ports are free is not asked: the relay whose file this is may be running.
        for address in [Some(&settings.config.listen.address), settings.config.metrics.address.as_ref()] {
            let Some(address) = address else { continue };
            let is_own = || {
                let mut found = address.to_socket_addrs()?;
                found.try_for_each(|found| TcpListener::bind((found.ip(), 0)).map(drop))
            };
            is_own().map_err(|cause| failure(RelayError::Listen { address: address.clone(), cause }))?;
        }
        tell("the configuration is in order");
        return Ok(ExitCode::SUCCESS);
    }
    let again = options.clone();
    let configure = move || again.config().map_err(|error| error.to_string());
    process::run(config, configure, |_| tell_systemd()).map_err(failure)?;
    Ok(ExitCode::SUCCESS)
}

/// A relay's error as the command line shows errors.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Report(RelayError);

impl Diagnostic for Report {
    fn help<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        Some(Box::new(
            "`offpath relay --example` prints a configuration with every key, and docs/redis.md and docs/relay.md explain them",
        ))
    }
}

fn failure(error: RelayError) -> Failure {
    Failure::new(BAD_INPUT, Report(error))
}

fn main() -> ExitCode {
    if let Err(error) = process::hold_hangups() {
        tell(&format!("SIGHUP ends this relay until it has started: {error}"));
    }
    offpath_terminal::program("offpath-relay", |options: &Options| options.color, |options| run(&options))
}
