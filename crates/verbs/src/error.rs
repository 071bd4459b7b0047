//! Why the verbs backend cannot start.

/// Why no device could be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerbsError {
    /// The library is not installed.
    #[error(
        "{library} cannot be loaded ({reason}); install the packages libibverbs1 and ibverbs-providers, or \
         run in the lab with `lab/run`"
    )]
    Library {
        /// Its file name.
        library: &'static str,
        /// What the loader said.
        reason: String,
    },
    /// The library of the connection manager is not installed.
    #[error(
        "{library} cannot be loaded ({reason}); install the package librdmacm1, or connect by \
         `ConnectBy::Exchange`"
    )]
    ConnectionLibrary {
        /// Its file name.
        library: &'static str,
        /// What the loader said.
        reason: String,
    },
    /// The connection manager finds devices by IP address, and the port's GID is none.
    #[error(
        "GID {gid_index} of {device} is not an IP address that the connection manager could route to; give its \
         network device an IPv4 address, choose another GID, or connect by `ConnectBy::Exchange`"
    )]
    NoIpAddress {
        /// The device.
        device: String,
        /// The GID's place in the port's table.
        gid_index: u8,
    },
    /// The library is too old, or another one of that name.
    #[error("{library} has no `{symbol}` ({reason}); install that of rdma-core 28 or later")]
    Symbol {
        /// The library's file name.
        library: &'static str,
        /// What is missing.
        symbol: &'static str,
        /// What the loader said.
        reason: String,
    },
    /// There is no RDMA device.
    #[error(
        "this machine has no RDMA device; load the driver of its card, add a Soft-RoCE one with `rdma link \
         add rxe0 type rxe netdev NAME`, or run in the lab with `lab/run`"
    )]
    NoDevice,
    /// There is none of that name.
    #[error("there is no RDMA device `{name}`; there is {known}")]
    NoSuchDevice {
        /// The name.
        name: String,
        /// What there is.
        known: String,
    },
    /// The port carries nothing.
    #[error("port {port} of {device} is in state {state}, not 4 (active); bring its link up")]
    PortDown {
        /// The device.
        device: String,
        /// The port, from 1.
        port: u8,
        /// The state as verbs number it.
        state: u32,
    },
    /// The port has no address.
    #[error("port {port} of {device} has no GID {asked}; give its network device an IP address")]
    NoGid {
        /// The device.
        device: String,
        /// The port, from 1.
        port: u8,
        /// Which was asked for.
        asked: String,
    },
    /// A call failed.
    #[error("{call} failed on {device}: {reason}; check permissions on /dev/infiniband and `ulimit -l`")]
    Call {
        /// The function.
        call: &'static str,
        /// The device.
        device: String,
        /// What the system said.
        reason: String,
    },
}
