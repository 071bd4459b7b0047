//! What the link layer of a network says of its packets, whoever states it: a machine's own tools, or the head of a log.

use offpath_profile::{Provenance, System};
use offpath_quantity::{Bytes, Quantity};
use std::sync::Arc;

/// The number of a system that it is.
const NAME: &str = "network.packet_header";

/// Bytes beside the payload of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketHeader {
    /// As most networks have it, and at least.
    pub size: Bytes,
    /// At most.
    pub at_most: Bytes,
    /// What they are.
    pub what: &'static str,
}

impl PacketHeader {
    /// RoCEv2 over IPv4: preamble and gap 20, Ethernet 18, IP 20, UDP 8, BTH 12, ICRC 4; at most a VLAN tag of 4 and IPv6,
    /// which has 20 more.
    const ROCE: PacketHeader = PacketHeader {
        size: Bytes::new(82),
        at_most: Bytes::new(106),
        what: "Ethernet: headers of RoCEv2 over IPv4, preamble and gap; with VLAN and IPv6 at most",
    };

    /// That of a link layer, as tools name it. Nothing of InfiniBand, whose headers profiles have, and of what is not stated.
    pub fn of_link_layer(layer: &str) -> Option<PacketHeader> {
        (layer == "Ethernet").then_some(PacketHeader::ROCE)
    }

    /// That of runs that each state a link layer or none: all that state one state the same.
    pub fn of_link_layers<'l>(layers: impl IntoIterator<Item = Option<&'l str>>) -> Option<PacketHeader> {
        let mut stated = layers.into_iter().flatten();
        let first = stated.next()?;
        stated.all(|layer| layer == first).then(|| PacketHeader::of_link_layer(first)).flatten()
    }

    /// The system with it where its own is a guess; what was measured, described or set of it is known better than by a name.
    pub fn put_into(self, system: &System) -> Option<System> {
        let is_guess = system.numbers.get(NAME).is_some_and(|number| number.provenance.is_guess());
        // Who sets it to what the guess is has it so.
        let is_set = system.overlays.iter().any(|change| {
            change.split_once('=').is_some_and(|(name, _)| name.trim().ends_with("packet_header"))
        });
        if !is_guess || is_set {
            return None;
        }
        let mut changed = system.with(NAME, Quantity::Bytes(self.size)).ok()?;
        let number = Arc::make_mut(changed.numbers.get_mut(NAME)?);
        number.low = Some(Quantity::Bytes(self.size));
        number.high = Some(Quantity::Bytes(self.at_most));
        number.source = format!("the logs state the link layer: {}", self.what);
        number.provenance = Provenance::Datasheet;
        Some(changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use offpath_profile::{Library, SystemRequest};

    fn system(settings: &[&str]) -> System {
        let settings = settings.iter().map(ToString::to_string).collect();
        let request = SystemRequest { device: "connectx7", settings, ..SystemRequest::default() };
        Library::builtin().load(&request).unwrap_or_else(|error| panic!("{error:?}"))
    }

    #[test]
    fn ethernet_that_every_log_states_replaces_a_guess_alone() {
        let (ethernet, infiniband) = (Some("Ethernet"), Some("IB"));
        let of = |layers: &[Option<&str>]| PacketHeader::of_link_layers(layers.iter().copied());
        assert_eq!(of(&[None, ethernet, ethernet]), Some(PacketHeader::ROCE));
        for none in [&[][..], &[None], &[infiniband], &[ethernet, infiniband]] {
            assert_eq!(of(none), None, "{none:?}");
        }
        let changed = PacketHeader::ROCE.put_into(&system(&[])).expect("the shipped one is carried over");
        assert_eq!(changed.network.packet_header, Bytes::new(82));
        let number = &changed.numbers[NAME];
        assert_eq!(number.high, Some(Quantity::Bytes(Bytes::new(106))));
        assert!(!number.provenance.is_guess());
        for set in ["network.packet_header=60B", "network.packet_header=48B"] {
            assert_eq!(PacketHeader::ROCE.put_into(&system(&[set])), None, "{set}");
        }
    }
}
