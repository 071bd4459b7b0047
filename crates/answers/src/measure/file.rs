//! A file of measurements: it grows by a line for each point, each on the disk before the next point runs.

use super::{MeasureRecord, MeasureStamp, MeasuredPointAnswer, SkippedPointAnswer};
use offpath_terminal::failure::Failure;
use offpath_terminal::output::unwritable;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A file of measurements, which is locked as long as this is there.
#[derive(Debug)]
pub struct MeasureFile {
    path: PathBuf,
    file: File,
    points: BTreeMap<String, MeasuredPointAnswer>,
    skipped: BTreeSet<SkippedPointAnswer>,
}

impl MeasureFile {
    /// Begins a file with its stamp, or goes on with one that the same command began. A last line that was cut off is
    /// dropped.
    ///
    /// # Errors
    /// Where it cannot be written, another program writes it, it is of something else, or its stamp is another.
    pub fn open(path: &Path, stamp: &MeasureStamp) -> Result<MeasureFile, Failure> {
        let failed = |error: std::io::Error| unwritable(path, &error);
        if path.is_dir() {
            return Err(Failure::input(format!("`{}` is a directory", path.display()), "name a file in it"));
        }
        // What was measured is read again, and a device or a pipe may have no end.
        if path.exists() && !path.is_file() {
            return Err(Failure::input(
                format!("`{}` is no file that could be gone on with", path.display()),
                "name a file with `--output`",
            ));
        }
        let mut file = File::options().read(true).append(true).create(true).open(path).map_err(failed)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                return Err(Failure::input(
                    format!("another `offpath measure` writes `{}`", path.display()),
                    "wait until it has ended, then run the same command; or write to another file",
                ));
            }
            // Where files have no locks, nothing is known of others.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        let mut measured =
            MeasureFile { path: path.to_path_buf(), file, points: BTreeMap::new(), skipped: BTreeSet::new() };
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        if whole == 0
            && !text.is_empty()
            && !line_of(&MeasureRecord::Stamp(Box::new(stamp.clone())))
                .as_bytes()
                .starts_with(&text.as_bytes()[..text.len().min(18)])
        {
            return Err(foreign(path, 1));
        }
        measured.read(&text[..whole], stamp)?;
        if whole < text.len() {
            measured.file.set_len(whole as u64).map_err(failed)?;
            measured.file.seek(SeekFrom::End(0)).map_err(failed)?;
        }
        if whole == 0 {
            measured.append(&MeasureRecord::Stamp(Box::new(stamp.clone())))?;
        }
        Ok(measured)
    }

    fn read(&mut self, text: &str, stamp: &MeasureStamp) -> Result<(), Failure> {
        for (at, line) in text.lines().enumerate() {
            let record: MeasureRecord =
                serde_json::from_str(line).map_err(|_| foreign(&self.path, at + 1))?;
            match record {
                MeasureRecord::Stamp(own) if at == 0 => same(&self.path, &own, stamp)?,
                MeasureRecord::Point(point) if at > 0 => {
                    self.points.insert(point.point.clone(), *point);
                }
                MeasureRecord::Skipped(skipped) if at > 0 => {
                    self.skipped.insert(skipped);
                }
                MeasureRecord::Failed(_) if at > 0 => {}
                _ => return Err(foreign(&self.path, at + 1)),
            }
        }
        Ok(())
    }

    /// Whether it has a point.
    pub fn has(&self, name: &str) -> bool {
        self.points.contains_key(name)
    }

    /// A point that it has.
    pub fn point(&self, name: &str) -> Option<&MeasuredPointAnswer> {
        self.points.get(name)
    }

    /// Adds a line, which is on the disk when this returns.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn append(&mut self, record: &MeasureRecord) -> Result<(), Failure> {
        let written = self.file.write_all(line_of(record).as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(|error| unwritable(&self.path, &error))
    }

    /// Adds a point that is skipped, unless it is there already.
    pub(super) fn skip(&mut self, name: &str, why: &str) -> Result<(), Failure> {
        let skipped = SkippedPointAnswer { skipped: name.to_string(), why: why.to_string() };
        if self.skipped.insert(skipped.clone()) {
            self.append(&MeasureRecord::Skipped(skipped))?;
        }
        Ok(())
    }
}

fn line_of(record: &MeasureRecord) -> String {
    serde_json::to_string(record).expect("records have names for keys") + "\n"
}

fn foreign(path: &Path, line: usize) -> Failure {
    Failure::input(
        format!("line {line} of `{}` is none of `offpath measure`", path.display()),
        match line {
            1 => "write to another file",
            _ => "take the line out, and what it was about is measured again; or write to another file",
        },
    )
}

/// Refuses a file that was begun for something else, by what differs.
fn same(path: &Path, own: &MeasureStamp, stamp: &MeasureStamp) -> Result<(), Failure> {
    let optional = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_string());
    let differs = [
        ("offpath's version", own.version.clone(), stamp.version.clone()),
        ("the backend", own.backend.clone(), stamp.backend.clone()),
        ("the device", own.device.clone(), stamp.device.clone()),
        ("the testbed", optional(&own.testbed), optional(&stamp.testbed)),
        ("the mode", optional(&own.mode), optional(&stamp.mode)),
        ("what is set", own.overlays.join(" "), stamp.overlays.join(" ")),
        ("the checksum of the profile", optional(&own.profile_crc32), optional(&stamp.profile_crc32)),
        ("the firmware", optional(&own.firmware), optional(&stamp.firmware)),
        ("the MTU in bytes", own.mtu_bytes.to_string(), stamp.mtu_bytes.to_string()),
        ("the peers", own.peers.join(" "), stamp.peers.join(" ")),
        ("--seed", own.seed.to_string(), stamp.seed.to_string()),
        ("--windows", own.windows.to_string(), stamp.windows.to_string()),
        ("the checksum of the suite's points", own.suite_crc32.clone(), stamp.suite_crc32.clone()),
    ];
    match differs.into_iter().find(|(_, was, is)| was != is) {
        None => Ok(()),
        Some((what, was, is)) => Err(Failure::input(
            format!("`{}` was begun otherwise: {what} was `{was}` and is `{is}`", path.display()),
            format!("repeat the command that began it, `{}`, or write to another file", own.command),
        )),
    }
}
