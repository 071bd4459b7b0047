use offpath_evidence::*;
fn main() {
    let rows = shipped().unwrap_or_else(|e| panic!("{e}"));
    let start = std::time::Instant::now();
    let lines =
        reproduce(&offpath_profile::Library::builtin(), &rows, &[], &[], 2).unwrap_or_else(|e| panic!("{e}"));
    for l in &lines {
        let v = l.verdict.as_ref();
        println!(
            "{:10} {:11} {:12} pub {:22} pred {:>10.3} [{:>9.3} {:>9.3}] err {:>8.3} {} {:>9} null {:>7.3} {:>7.3} {} {}",
            l.row.id,
            l.row.kind.name(),
            l.row.role.name(),
            l.row.published.map_or("-".into(), |c| format!("{c:.40} {}", l.row.unit)),
            v.map_or(f64::NAN, |v| v.predicted),
            v.map_or(f64::NAN, |v| v.from),
            v.map_or(f64::NAN, |v| v.to),
            v.map_or(f64::NAN, |v| v.error),
            match l.scored() {
                Some(true) => "ok  ",
                Some(false) => "MISS",
                None =>
                    if v.is_some_and(|v| !v.within) {
                        "out "
                    } else {
                        "    "
                    },
            },
            l.low.map_or("".into(), |x| format!("{:.3}..{:.3}", x, l.high.unwrap())),
            l.null_links.unwrap_or(f64::NAN),
            l.null_nearest.as_ref().map_or(f64::NAN, |n| n.0),
            l.configured.as_ref().map_or(String::new(), |c| format!("{c:?}")),
            v.map_or("", |v| v.place.as_str())
        );
    }
    println!("{:#?} {:?}", summary(&lines), start.elapsed());
}
