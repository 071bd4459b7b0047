//! What verbs say in numbers of their own: times, states, headers, and what an end tells its peer.

use crate::bindings::*;
use crate::region::HEADER;
use offpath_fabric::Status;
use offpath_quantity::Time;

/// What a peer needs to know to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameters {
    pub queue_pair: u32,
    /// The number of the first packet that this end sends.
    pub first_packet: u32,
    pub path: [u8; 20],
    pub mtu: u8,
    /// How many READs and atomics this end answers at once.
    pub reads: u8,
    /// How long this end waits when the other has no receive, as verbs encode it: the other end's
    /// refusals say it.
    pub receiver_not_ready: u8,
}

impl Parameters {
    pub const BYTES: usize = 31;

    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&self.queue_pair.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.first_packet.to_le_bytes());
        bytes[8..28].copy_from_slice(&self.path);
        bytes[28..].copy_from_slice(&[self.mtu, self.reads, self.receiver_not_ready]);
        bytes
    }

    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Parameters {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let mut path = [0; 20];
        path.copy_from_slice(&bytes[8..28]);
        Parameters {
            queue_pair: word(0),
            first_packet: word(4) & 0xff_ffff,
            path,
            mtu: bytes[28],
            reads: bytes[29],
            receiver_not_ready: bytes[30],
        }
    }
}

/// The least `n` of verbs with `4.096 us * 2^n` at or above `span`.
pub(super) fn timeout_code(span: Time) -> u8 {
    let code = (1..31).find(|code| Time::from_ns(4096 << code) >= span);
    code.unwrap_or(31)
}

/// The waits for a receive that verbs can express, in us; the place is the code.
const NOT_READY: [u64; 32] = [
    655_360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280, 1920, 2560, 3840, 5120, 7680,
    10_240, 15_360, 20_480, 30_720, 40_960, 61_440, 81_920, 122_880, 163_840, 245_760, 327_680, 491_520,
];

/// The least wait of verbs at or above `span`.
pub(super) fn not_ready_code(span: Time) -> u8 {
    // The longest has code 0.
    (1..32u8).find(|code| Time::from_us(NOT_READY[usize::from(*code)]) >= span).unwrap_or(0)
}

pub(crate) fn status(code: u32) -> Status {
    match code {
        IBV_WC_SUCCESS => Status::Success,
        IBV_WC_LOC_LEN_ERR => Status::LocalLength,
        IBV_WC_LOC_QP_OP_ERR => Status::LocalOperation,
        IBV_WC_LOC_PROT_ERR | IBV_WC_LOC_ACCESS_ERR => Status::LocalProtection,
        IBV_WC_WR_FLUSH_ERR => Status::Flushed,
        IBV_WC_BAD_RESP_ERR => Status::BadResponse,
        IBV_WC_REM_INV_REQ_ERR => Status::RemoteInvalidRequest,
        IBV_WC_REM_ACCESS_ERR => Status::RemoteAccess,
        IBV_WC_REM_OP_ERR | IBV_WC_REM_ABORT_ERR => Status::RemoteOperation,
        IBV_WC_RETRY_EXC_ERR | IBV_WC_RESP_TIMEOUT_ERR => Status::RetryExceeded,
        IBV_WC_RNR_RETRY_EXC_ERR => Status::ReceiverNotReady,
        _ => Status::Fatal,
    }
}

/// The sender's GID in the header before a UD message: an InfiniBand header, or an IPv4 one in the last
/// 20 bytes, as RoCE v2 has it.
pub(super) fn sender(header: &[u8; HEADER as usize]) -> [u8; 16] {
    let mut gid = [0; 16];
    if header[0] >> 4 == 6 {
        gid.copy_from_slice(&header[8..24]);
    } else {
        gid[10..12].fill(0xff);
        gid[12..].copy_from_slice(&header[32..36]);
    }
    gid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_up_to_what_verbs_express() {
        assert_eq!(timeout_code(Time::ZERO), 1);
        assert_eq!(timeout_code(Time::from_ns(8192)), 1);
        assert_eq!(timeout_code(Time::from_ms(1)), 8);
        assert_eq!(timeout_code(Time::MAX), 31);
        assert_eq!(not_ready_code(Time::ZERO), 1);
        assert_eq!(not_ready_code(Time::from_us(11)), 2);
        assert_eq!(not_ready_code(Time::from_ms(491)), 31);
        assert_eq!(not_ready_code(Time::from_ms(500)), 0);
    }

    #[test]
    fn parameters_come_back_from_bytes() {
        let parameters = Parameters {
            queue_pair: 0x0102_0304,
            first_packet: 0x0a_0b0c,
            path: std::array::from_fn(|index| index as u8),
            mtu: 3,
            reads: 16,
            receiver_not_ready: 31,
        };
        assert_eq!(Parameters::from_bytes(&parameters.to_bytes()), parameters);
    }

    #[test]
    fn senders_are_found_behind_both_headers() {
        let mut header = [0; 40];
        header[0] = 0x60;
        header[8..24].copy_from_slice(&[7; 16]);
        assert_eq!(sender(&header), [7; 16]);
        let mut header = [0; 40];
        header[20] = 0x45;
        header[32..36].copy_from_slice(&[10, 0, 0, 9]);
        assert_eq!(sender(&header), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 9]);
    }

    #[test]
    fn every_status_has_a_name() {
        assert_eq!(status(IBV_WC_SUCCESS), Status::Success);
        assert_eq!(status(IBV_WC_RETRY_EXC_ERR), Status::RetryExceeded);
        assert_eq!(status(19), Status::Fatal);
        assert_eq!(status(99), Status::Fatal);
    }
}
