//! Where commands of the replication stream begin and end.
//!
//! Bytes are passed on as they are. Boundaries are needed for one thing: after a link was cut, a
//! replica must stand where a command, or a whole transaction, has ended. A server that was promoted
//! knows offsets of whole commands only, so a relay that asks for the middle of one would cause a full
//! synchronisation where a partial one is possible.

use thiserror::Error;

/// The longest line that a header or an inline command may have, in bytes.
const LINE: usize = 64 * 1024;
/// The largest argument that a stream may announce, in bytes. It is passed on, never kept, so this
/// only tells a stream from noise.
const ARGUMENT: u64 = 1 << 40;
/// The most arguments that one command may announce; a server's own limit is 2^31 - 1.
const ARGUMENTS: u64 = (1 << 31) - 1;

/// Bytes that are no replication stream.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FramingError {
    /// A header that is not a number, or a number out of range.
    #[error("the stream has a header of {what} that is not a number from 0 to {limit}")]
    Header {
        /// What the header announces.
        what: &'static str,
        /// The largest number that is taken.
        limit: u64,
    },
    /// A byte that cannot stand where it stands.
    #[error("the stream has byte 0x{found:02x} where {expected} has to stand")]
    Unexpected {
        /// What the protocol has there.
        expected: &'static str,
        /// What was read.
        found: u8,
    },
    /// An inline command without an end.
    #[error("the stream has a line above the limit of {LINE} B")]
    Line,
}

/// What a piece of the stream brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamProgress {
    /// Bytes of the piece after which no command or transaction is open, the last such place.
    pub boundary: Option<usize>,
    /// Commands that ended in the piece.
    pub commands: u64,
    /// Where the master asked for an acknowledgement (`REPLCONF GETACK`): the bytes before each
    /// request since the framer began.
    pub questions: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the first byte of a command.
    Start,
    /// In a line that is a command by itself; the bytes so far.
    Inline(usize),
    /// In `*COUNT`; the number so far and its digits.
    Count(u64, u8),
    /// Before `$`.
    Bulk,
    /// In `$LENGTH`.
    Length(u64, u8),
    /// The line feed that ends `*COUNT` is next.
    CountEnd(u64),
    /// The line feed that ends `$LENGTH` is next.
    LengthEnd(u64),
    /// In an argument and its CRLF; bytes that are left.
    Body(u64),
}

/// Follows the stream piece by piece; its memory is constant.
#[derive(Clone, Debug)]
pub struct Framer {
    state: State,
    arguments: u64,
    argument: u64,
    /// The start of the first two arguments, to tell the few commands that matter here.
    words: [[u8; 8]; 2],
    lengths: [u64; 2],
    in_transaction: bool,
    /// Bytes of all pieces before this one.
    before: u64,
    /// Bytes before the command that is open.
    began: u64,
}

impl Default for Framer {
    fn default() -> Framer {
        Framer::new()
    }
}

impl Framer {
    /// At the start of a command, outside of a transaction.
    pub fn new() -> Framer {
        Framer {
            state: State::Start,
            arguments: 0,
            argument: 0,
            words: [[0; 8]; 2],
            lengths: [0; 2],
            in_transaction: false,
            before: 0,
            began: 0,
        }
    }

    fn word(&self, index: usize, expected: &[u8]) -> bool {
        self.lengths[index] == expected.len() as u64
            && self.words[index][..expected.len()].eq_ignore_ascii_case(expected)
    }

    fn command_ended(&mut self, at: usize, progress: &mut StreamProgress) {
        self.state = State::Start;
        progress.commands += 1;
        match self.arguments {
            1 if self.word(0, b"MULTI") => self.in_transaction = true,
            1 if self.word(0, b"EXEC") || self.word(0, b"DISCARD") => self.in_transaction = false,
            3 if self.word(0, b"REPLCONF") && self.word(1, b"GETACK") => {
                progress.questions.push(self.began);
            }
            _ => {}
        }
        if !self.in_transaction {
            progress.boundary = Some(at);
        }
    }

    /// Follows `piece`, the bytes after those of the last call.
    pub fn feed(&mut self, piece: &[u8]) -> Result<StreamProgress, FramingError> {
        let mut progress = StreamProgress::default();
        let mut at = 0;
        while at < piece.len() {
            let byte = piece[at];
            match self.state {
                State::Start => {
                    self.began = self.before + at as u64;
                    at += 1;
                    self.argument = 0;
                    self.lengths = [0; 2];
                    match byte {
                        b'*' => self.state = State::Count(0, 0),
                        b'\n' => self.command_ended(at, &mut progress),
                        b'\r' | b' ' | b'a'..=b'z' | b'A'..=b'Z' => self.state = State::Inline(1),
                        found => return Err(FramingError::Unexpected { expected: "a command", found }),
                    }
                }
                State::Inline(length) => {
                    at += 1;
                    if byte == b'\n' {
                        self.command_ended(at, &mut progress);
                    } else if length >= LINE {
                        return Err(FramingError::Line);
                    } else {
                        self.state = State::Inline(length + 1);
                    }
                }
                State::Count(count, digits) => {
                    at += 1;
                    self.state = match byte {
                        b'\r' if digits > 0 => State::CountEnd(count),
                        _ => {
                            let (count, digits) = digit(count, digits, byte, "arguments", ARGUMENTS)?;
                            State::Count(count, digits)
                        }
                    };
                }
                State::CountEnd(count) => {
                    at += 1;
                    end_of_line(byte)?;
                    self.arguments = count;
                    self.state = State::Bulk;
                    if count == 0 {
                        self.command_ended(at, &mut progress);
                    }
                }
                State::Bulk => {
                    at += 1;
                    if byte != b'$' {
                        return Err(FramingError::Unexpected { expected: "`$`", found: byte });
                    }
                    self.state = State::Length(0, 0);
                }
                State::Length(length, digits) => {
                    at += 1;
                    self.state = match byte {
                        b'\r' if digits > 0 => State::LengthEnd(length),
                        _ => {
                            let (length, digits) =
                                digit(length, digits, byte, "an argument's length", ARGUMENT)?;
                            State::Length(length, digits)
                        }
                    };
                }
                State::LengthEnd(length) => {
                    at += 1;
                    end_of_line(byte)?;
                    if let Some(kept) = self.lengths.get_mut(self.argument as usize) {
                        *kept = length;
                    }
                    self.state = State::Body(length + 2);
                }
                State::Body(left) => {
                    let taken = left.min((piece.len() - at) as u64) as usize;
                    if self.argument < 2 {
                        self.keep(&piece[at..at + taken], left);
                    }
                    at += taken;
                    let left = left - taken as u64;
                    self.state = State::Body(left);
                    if left == 0 {
                        if piece[at - 1] != b'\n' {
                            let found = piece[at - 1];
                            return Err(FramingError::Unexpected {
                                expected: "the end of an argument",
                                found,
                            });
                        }
                        self.argument += 1;
                        self.state = State::Bulk;
                        if self.argument == self.arguments {
                            self.command_ended(at, &mut progress);
                        }
                    }
                }
            }
        }
        self.before += piece.len() as u64;
        Ok(progress)
    }

    /// Keeps what of `part`, which has `left` bytes to the end of its argument, starts the argument.
    fn keep(&mut self, part: &[u8], left: u64) {
        let index = self.argument as usize;
        let length = self.lengths[index];
        if length > 8 {
            return;
        }
        let from = (length + 2 - left) as usize;
        for (place, byte) in self.words[index].iter_mut().skip(from).zip(part) {
            *place = *byte;
        }
    }
}

fn digit(
    number: u64,
    digits: u8,
    byte: u8,
    what: &'static str,
    limit: u64,
) -> Result<(u64, u8), FramingError> {
    let value = match byte {
        b'0'..=b'9' => number * 10 + u64::from(byte - b'0'),
        _ => return Err(FramingError::Header { what, limit }),
    };
    // Leading zeros would keep the number small in a line without an end.
    if value > limit || digits >= 19 {
        return Err(FramingError::Header { what, limit });
    }
    Ok((value, digits + 1))
}

fn end_of_line(byte: u8) -> Result<(), FramingError> {
    match byte {
        b'\n' => Ok(()),
        found => Err(FramingError::Unexpected { expected: "a line feed", found }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp;
    use proptest::prelude::*;

    fn stream(commands: &[&[&str]]) -> Vec<u8> {
        let mut out = Vec::new();
        for command in commands {
            resp::write_request(&mut out, &command.iter().map(|word| word.as_bytes()).collect::<Vec<_>>());
        }
        out
    }

    #[test]
    fn a_transaction_is_one_unit() {
        let before = stream(&[&["SELECT", "0"]]);
        let open = stream(&[&["multi"], &["SET", "a", "b"]]);
        let closed = stream(&[&["EXEC"]]);
        let mut framer = Framer::new();
        let all = [before.clone(), open.clone()].concat();
        assert_eq!(framer.feed(&all).unwrap().boundary, Some(before.len()));
        let progress = framer.feed(&closed).unwrap();
        assert_eq!((progress.boundary, progress.commands), (Some(closed.len()), 1));
    }

    #[test]
    fn requests_for_acknowledgement_are_seen() {
        let asks = |command: &[&str]| Framer::new().feed(&stream(&[command])).unwrap().questions;
        assert_eq!(asks(&["REPLCONF", "GETACK", "*"]), [0]);
        assert_eq!(asks(&["replconf", "getack", "*"]), [0]);
        assert!(asks(&["REPLCONF", "GETACKS", "*"]).is_empty());
        assert!(asks(&["SET", "REPLCONF", "GETACK"]).is_empty());
        let before = stream(&[&["SET", "a", "b"]]).len() as u64;
        let both = stream(&[&["SET", "a", "b"], &["REPLCONF", "GETACK", "*"]]);
        let mut framer = Framer::new();
        framer.feed(&both[..40]).unwrap();
        assert_eq!(framer.feed(&both[40..]).unwrap().questions, [before]);
        // Each of those that come in one piece is one: who waits at the first does not wait for what the last is about.
        let again = both.len() as u64;
        assert_eq!(framer.feed(&both.repeat(2)).unwrap().questions, [again + before, 2 * again + before]);
    }

    #[test]
    fn noise_is_refused_at_once() {
        for noise in [
            &b"*-1\r\n"[..],
            b"*1\r\n:1\r\n",
            b"*1\r\n$99999999999999999999\r\n",
            b"*1\r\n$1\r\nabc",
            b"\x00",
            b"*\r\n",
            b"*00000000000000000000000000001\r\n",
            b"*1\r\r",
        ] {
            assert!(Framer::new().feed(noise).is_err(), "{noise:?}");
        }
        assert_eq!(Framer::new().feed(&vec![b'a'; LINE + 2]), Err(FramingError::Line));
    }

    proptest! {
        #[test]
        fn boundaries_do_not_depend_on_the_pieces(
            commands in prop::collection::vec(prop::collection::vec("[ -~]{0,12}|MULTI|EXEC", 1..4), 1..8),
            size in 1usize..40,
        ) {
            let mut out = Vec::new();
            let mut ends = Vec::new();
            let mut open = false;
            for command in &commands {
                resp::write_request(&mut out, &command.iter().map(|word| word.as_bytes()).collect::<Vec<_>>());
                if command.len() == 1 {
                    match command[0].to_ascii_uppercase().as_str() {
                        "MULTI" => open = true,
                        "EXEC" | "DISCARD" => open = false,
                        _ => {}
                    }
                }
                if !open {
                    ends.push(out.len());
                }
            }
            let mut framer = Framer::new();
            let mut last = None;
            let mut count = 0;
            for (index, piece) in out.chunks(size).enumerate() {
                let progress = framer.feed(piece).unwrap();
                last = progress.boundary.map(|at| index * size + at).or(last);
                count += progress.commands;
                prop_assert_eq!(last, ends.iter().rev().find(|end| **end <= index * size + piece.len()).copied());
            }
            prop_assert_eq!(count, commands.len() as u64);
        }

        #[test]
        fn any_bytes_are_answered(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..6)) {
            let mut framer = Framer::new();
            for piece in pieces {
                match framer.feed(&piece) {
                    Ok(progress) => prop_assert!(progress.boundary.is_none_or(|at| at <= piece.len())),
                    Err(_) => break,
                }
            }
        }
    }
}
