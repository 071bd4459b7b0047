//! What files are called in a table: as short as tells them apart.

use std::collections::{BTreeMap, BTreeSet};

/// Each file with its name: without folders where no other is called so, and else without those that all have.
pub(crate) fn file_names<'a>(files: impl IntoIterator<Item = &'a str>) -> BTreeMap<&'a str, &'a str> {
    let files: BTreeSet<&str> = files.into_iter().collect();
    let base = |file: &'a str| file.rsplit('/').next().unwrap_or(file);
    let bases: BTreeSet<&str> = files.iter().map(|file| base(file)).collect();
    if bases.len() == files.len() {
        return files.iter().map(|file| (*file, base(file))).collect();
    }
    // They are sorted, so what the first and the last have in common all have.
    let (Some(first), Some(last)) = (files.first(), files.last()) else { return BTreeMap::new() };
    let same = first.bytes().zip(last.bytes()).take_while(|(one, other)| one == other).count();
    let from = first.as_bytes()[..same].iter().rposition(|byte| *byte == b'/').map_or(0, |place| place + 1);
    files.iter().map(|file| (*file, &file[from..])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_called_as_briefly_as_tells_them_apart() {
        let of = |files: &[&'static str]| -> Vec<&'static str> {
            file_names(files.iter().copied()).into_values().collect()
        };
        assert_eq!(of(&["/logs/a/x.log", "/logs/a/y.log"]), ["x.log", "y.log"]);
        assert_eq!(
            of(&["/logs/a/x.log", "/logs/b/x.log", "/logs/b/y.log"]),
            ["a/x.log", "b/x.log", "b/y.log"]
        );
        assert_eq!(of(&["a/x.log", "x.log", "-"]), ["-", "a/x.log", "x.log"]);
        assert_eq!(
            of(&["/l/alp/x.log", "/l/alp/y.log", "/l/alpha/x.log"]),
            ["alp/x.log", "alp/y.log", "alpha/x.log"]
        );
        assert!(of(&[]).is_empty());
    }
}
