//! The file that a full synchronisation carries, in its two forms: `$LENGTH` and that many bytes, or
//! `$EOF:MARK` and bytes up to the mark of 40 bytes.
//!
//! A master that streams without a disk does not know the length. It sends nothing behind the mark
//! until the replica has acknowledged, so the mark is always the end of what was read.

use thiserror::Error;

/// Bytes of the mark that ends a file without a length.
pub const MARK: usize = 40;
/// The longest announcement that is taken, in bytes.
const LINE: usize = 256;

/// How the end of the file is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// By its length in bytes.
    Length(u64),
    /// By a mark.
    Mark([u8; MARK]),
}

/// An announcement or a file that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PayloadError {
    /// The master refused after all.
    #[error("the master aborted the synchronisation: {0}")]
    Refused(String),
    /// No announcement of a file.
    #[error("expected `$LENGTH` or `$EOF:` with a mark of {MARK} B, and read `{0}`")]
    Announcement(String),
    /// A line without an end.
    #[error("the announcement of the file is longer than {LINE} B")]
    Line,
    /// The file begins like no file of Redis or Valkey.
    #[error("the file begins with `{0}`; expected `REDIS` or `VALKEY` and a version")]
    Magic(String),
}

/// Takes the announcement from the front of `data`, skipping the empty lines that a master sends
/// while it prepares. The answer is the form and the bytes taken; `None` while it is not complete.
pub fn announcement(data: &[u8]) -> Result<Option<(Form, usize)>, PayloadError> {
    let skipped = data.iter().take_while(|byte| **byte == b'\n').count();
    let rest = &data[skipped..];
    let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
        return if rest.len() > LINE { Err(PayloadError::Line) } else { Ok(None) };
    };
    if end > LINE {
        return Err(PayloadError::Line);
    }
    let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
    let shown = || String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned();
    if line.first() == Some(&b'-') {
        return Err(PayloadError::Refused(shown()));
    }
    let form = if let Some(mark) = line.strip_prefix(b"$EOF:") {
        mark.try_into().ok().map(Form::Mark)
    } else {
        line.strip_prefix(b"$")
            .filter(|digits| digits.iter().all(u8::is_ascii_digit))
            .and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok())
            .map(Form::Length)
    };
    form.map(|form| Some((form, skipped + end + 1))).ok_or_else(|| PayloadError::Announcement(shown()))
}

/// Which server wrote the file, and the version of its format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RdbFormat {
    /// `REDIS0011`: Redis, and Valkey for replicas that did not say they are Valkey 9.
    Redis(u32),
    /// `VALKEY080`: Valkey 9 and later alone.
    Valkey(u32),
}

impl RdbFormat {
    /// The format of a file by its first nine bytes.
    pub fn of(start: &[u8]) -> Result<RdbFormat, PayloadError> {
        let wrong = || PayloadError::Magic(start[..start.len().min(9)].escape_ascii().to_string());
        let version = |digits: &[u8]| -> Option<u32> {
            digits.iter().all(u8::is_ascii_digit).then(|| std::str::from_utf8(digits).ok()?.parse().ok())?
        };
        let start = start.get(..9).ok_or_else(wrong)?;
        if let Some(digits) = start.strip_prefix(b"REDIS") {
            version(digits).map(RdbFormat::Redis).ok_or_else(wrong)
        } else if let Some(digits) = start.strip_prefix(b"VALKEY") {
            version(digits).map(RdbFormat::Valkey).ok_or_else(wrong)
        } else {
            Err(wrong())
        }
    }

    /// The oldest servers that load the file, for messages.
    pub fn readers(&self) -> &'static str {
        match self {
            RdbFormat::Redis(..=9) => "Redis 5 and later, and Valkey",
            RdbFormat::Redis(10) => "Redis 7.0 and later, and Valkey",
            RdbFormat::Redis(11) => "Redis 7.2 and later, and Valkey",
            RdbFormat::Redis(_) => "Redis 7.4 and later",
            RdbFormat::Valkey(_) => "Valkey 9 and later",
        }
    }
}

impl std::fmt::Display for RdbFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RdbFormat::Redis(version) => write!(f, "REDIS{version:04}"),
            RdbFormat::Valkey(version) => write!(f, "VALKEY{version:03}"),
        }
    }
}

/// Follows the bytes of a file to its end. Bytes that may be the mark are held back, 40 at most.
#[derive(Clone, Debug)]
pub struct Body {
    form: Form,
    given: u64,
    held: Vec<u8>,
    ended: bool,
}

impl Body {
    /// Before the first byte.
    pub fn new(form: Form) -> Body {
        Body { form, given: 0, held: Vec::new(), ended: form == Form::Length(0) }
    }

    /// Whether the whole file was given out.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Takes the bytes of the file from the front of `piece` and appends them to `out`. The answer is
    /// how many bytes of `piece` belong to the file; what is behind them is the stream of commands.
    pub fn feed(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<usize, PayloadError> {
        if self.ended {
            return Ok(0);
        }
        match self.form {
            Form::Length(length) => {
                let taken = (length - self.given).min(piece.len() as u64) as usize;
                out.extend_from_slice(&piece[..taken]);
                self.given += taken as u64;
                self.ended = self.given == length;
                Ok(taken)
            }
            Form::Mark(mark) => {
                self.held.extend_from_slice(piece);
                let sure = self.held.len().saturating_sub(MARK);
                self.given += sure as u64;
                out.extend(self.held.drain(..sure));
                self.ended = self.held == mark;
                if self.ended {
                    self.held.clear();
                }
                Ok(piece.len())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn announcements_have_two_forms() {
        assert_eq!(announcement(b"\n\n$176\r\nREDIS"), Ok(Some((Form::Length(176), 8))));
        let mark = [b'a'; MARK];
        let line = [b"$EOF:".as_slice(), &mark, b"\r\n"].concat();
        assert_eq!(announcement(&line), Ok(Some((Form::Mark(mark), 47))));
        for end in 0..line.len() {
            assert_eq!(announcement(&line[..end]), Ok(None));
        }
        assert!(matches!(announcement(b"-ERR no\r\n"), Err(PayloadError::Refused(_))));
        assert!(matches!(announcement(b"$-1\r\n"), Err(PayloadError::Announcement(_))));
        assert!(matches!(announcement(b"$EOF:short\r\n"), Err(PayloadError::Announcement(_))));
        assert_eq!(announcement(&[b'$'; 300]), Err(PayloadError::Line));
    }

    #[test]
    fn formats_are_told_by_nine_bytes() {
        assert_eq!(RdbFormat::of(b"REDIS0011\xfa"), Ok(RdbFormat::Redis(11)));
        assert_eq!(RdbFormat::of(b"VALKEY080\xfa"), Ok(RdbFormat::Valkey(80)));
        assert_eq!(RdbFormat::Redis(9).to_string(), "REDIS0009");
        assert!(RdbFormat::of(b"REDIS+011").is_err());
        assert!(RdbFormat::of(b"REDIS").is_err());
    }

    proptest! {
        #[test]
        fn a_file_is_the_same_in_any_pieces(file in prop::collection::vec(b'a'..b'c', 0..200), size in 1usize..60) {
            let mark = [b'c'; MARK];
            let with_mark = [file.clone(), mark.to_vec()].concat();
            let mut out = Vec::new();
            let mut body = Body::new(Form::Mark(mark));
            for piece in with_mark.chunks(size) {
                prop_assert!(!body.ended());
                prop_assert_eq!(body.feed(piece, &mut out), Ok(piece.len()));
            }
            prop_assert!(body.ended());
            prop_assert_eq!(&out, &file);

            let mut body = Body::new(Form::Length(file.len() as u64));
            let with_stream = [file.clone(), b"*1".to_vec()].concat();
            let (mut out, mut taken) = (Vec::new(), 0);
            for piece in with_stream.chunks(size) {
                taken += body.feed(piece, &mut out).unwrap();
            }
            prop_assert!(body.ended());
            prop_assert_eq!(taken, file.len());
            prop_assert_eq!(out, file);
        }

        #[test]
        fn any_bytes_are_answered(data in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = announcement(&data);
            let _ = RdbFormat::of(&data);
        }
    }
}
