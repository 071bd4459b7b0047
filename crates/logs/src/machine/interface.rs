//! Network ports, as `ibv_devinfo`, `ethtool` and /sys describe them.

use super::pci::PciAddress;
use super::{FactPlace, Stated, state};
use offpath_quantity::{BitRate, Bytes};

/// A port of an RDMA device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RdmaPortFacts {
    /// The device, as its driver names it.
    pub device: String,
    /// The port, from 1; 0 until the list names one.
    pub port: u64,
    /// Its function, where /sys was asked.
    pub address: Option<Stated<PciAddress>>,
    /// Version of the firmware.
    pub firmware: Option<Stated<String>>,
    /// READs and atomics that a queue pair may have in flight as requester.
    pub outstanding_reads: Option<Stated<u64>>,
    /// READs and atomics of a queue pair that it answers at once.
    pub outstanding_reads_answered: Option<Stated<u64>>,
    /// Whether the port is up.
    pub is_active: Option<Stated<bool>>,
    /// Largest path MTU that it knows.
    pub mtu_at_most: Option<Stated<Bytes>>,
    /// Path MTU in force.
    pub mtu: Option<Stated<Bytes>>,
    /// `Ethernet` or `InfiniBand`.
    pub link_layer: Option<Stated<String>>,
    /// Lanes in force.
    pub lanes: Option<Stated<u64>>,
    /// Rate of a lane as the tool names it: of InfiniBand up to QDR the signalling rate, else what it carries.
    pub lane_rate: Option<Stated<BitRate>>,
    /// The number of that rate in the standard, where it is said.
    pub lane_rate_code: Option<Stated<u64>>,
}

impl RdmaPortFacts {
    /// READs and atomics of a queue pair that may be in flight between two such ports: what the one asks and the other answers.
    pub fn reads_in_flight(&self) -> Option<&Stated<u64>> {
        let both = [&self.outstanding_reads, &self.outstanding_reads_answered];
        both.into_iter().flatten().filter(|reads| reads.value > 0).min_by_key(|reads| reads.value)
    }

    /// Bits per second of the port.
    pub fn rate(&self) -> Option<Stated<BitRate>> {
        let (lanes, rate) = (self.lanes.as_ref()?, self.lane_rate.as_ref()?);
        let named = rate.value.bits_per_second();
        // 8b/10b takes a fifth of InfiniBand's SDR, DDR and QDR. FDR10 has a number of its own; Ethernet is named by what it carries.
        let is_ethernet = self.link_layer.as_ref().is_some_and(|layer| layer.value == "Ethernet");
        let is_8b10b = match &self.lane_rate_code {
            Some(code) => [1, 2, 4].contains(&code.value),
            None => named <= 10_000_000_000,
        };
        let carried = if is_8b10b && !is_ethernet { named / 5 * 4 } else { named };
        let all = carried.checked_mul(lanes.value)?;
        Some(Stated { value: BitRate::from_bits_per_second(all), at: rate.at.clone() })
    }

    /// Takes a line of `ibv_devinfo -v`.
    pub(super) fn take(&mut self, key: &str, value: &str, at: &FactPlace) -> bool {
        let count = || value.parse().ok();
        let first = value.split_whitespace().next().unwrap_or_default();
        let mtu = || {
            let count: u64 = first.parse().ok()?;
            (count.is_power_of_two() && (256..=4096).contains(&count)).then(|| Bytes::new(count))
        };
        match key {
            "fw_ver" => state(&mut self.firmware, Some(value.to_string()), at),
            "max_qp_init_rd_atom" => state(&mut self.outstanding_reads, count(), at),
            "max_qp_rd_atom" => state(&mut self.outstanding_reads_answered, count(), at),
            "state" => state(&mut self.is_active, Some(first == "PORT_ACTIVE"), at),
            "max_mtu" => state(&mut self.mtu_at_most, mtu(), at),
            "active_mtu" => state(&mut self.mtu, mtu(), at),
            "link_layer" => state(&mut self.link_layer, Some(value.to_string()), at),
            "active_width" => {
                let lanes = first.strip_suffix('X').and_then(|lanes| lanes.parse().ok());
                state(&mut self.lanes, lanes.filter(|lanes| (1..=16).contains(lanes)), at)
            }
            "active_speed" => {
                let giga = value.split_once("Gbps").and_then(|(giga, _)| giga.trim().parse::<f64>().ok());
                let code =
                    value.rsplit_once('(').and_then(|(_, code)| code.strip_suffix(')')?.trim().parse().ok());
                if code.is_some() {
                    state(&mut self.lane_rate_code, code, at);
                }
                state(&mut self.lane_rate, giga.and_then(lane_rate), at)
            }
            _ => false,
        }
    }
}

/// The rate of a lane that the tool names.
fn lane_rate(giga: f64) -> Option<BitRate> {
    let fits = (0.5..=1000.0).contains(&giga);
    fits.then(|| BitRate::from_bits_per_second((giga * 1e9).round() as u64))
}

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceFacts {
    /// Its function.
    pub address: Option<Stated<PciAddress>>,
    /// Its rate now.
    pub rate: Option<Stated<BitRate>>,
    /// The greatest rate among the modes that it supports.
    pub rate_at_most: Option<Stated<BitRate>>,
    /// Largest packet, Ethernet's header not counted.
    pub mtu_bytes: Option<Stated<u64>>,
    /// Whether it stops when it is sent pause frames.
    pub receives_pause: Option<Stated<bool>>,
    /// Whether it sends them.
    pub sends_pause: Option<Stated<bool>>,
}

impl InterfaceFacts {
    /// Takes a line of `ethtool`, `ethtool -a` and `ethtool -i`.
    pub(super) fn take(&mut self, key: &str, value: &str, at: &FactPlace) -> bool {
        let on = || match value {
            "on" => Some(true),
            "off" => Some(false),
            _ => None,
        };
        match key {
            "Speed" => {
                let mega = value.strip_suffix("Mb/s").and_then(|mega| mega.parse::<u64>().ok());
                let rate =
                    mega.and_then(|mega| mega.checked_mul(1_000_000)).map(BitRate::from_bits_per_second);
                state(&mut self.rate, rate, at)
            }
            "RX" => state(&mut self.receives_pause, on(), at),
            "TX" => state(&mut self.sends_pause, on(), at),
            "bus-info" => state(&mut self.address, PciAddress::read(value), at),
            _ => false,
        }
    }

    /// Takes a mode such as `100000baseCR4/Full`.
    pub(super) fn take_mode(&mut self, mode: &str, at: &FactPlace) -> bool {
        let Some((mega, _)) = mode.split_once("base") else { return false };
        let Some(bits) = mega.parse::<u64>().ok().and_then(|mega| mega.checked_mul(1_000_000)) else {
            return false;
        };
        let rate = BitRate::from_bits_per_second(bits);
        if self.rate_at_most.as_ref().is_none_or(|known| known.value < rate) {
            self.rate_at_most = Some(Stated { value: rate, at: at.clone() });
        }
        true
    }
}
