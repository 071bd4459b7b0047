//! Pages and charts: well-formed, the same bytes every time, distinguishable without colour, and
//! safe against hostile names.

use assert_cmd::cargo::cargo_bin_cmd;
use offpath::answers::system::{SystemAnswer, TopologyAnswer};
use offpath::profile::{Library, SystemRequest};
use offpath::report::{
    Axis, Chart, Fact, MOST_SERIES, Page, PageBlock, PublishedChart, PublishedMark, Section, Series, Span,
    Spans, StationLoad, Table, Ticks, Topology,
};
use proptest::prelude::*;
use roxmltree::{Document, ParsingOptions};
use std::collections::BTreeSet;
use std::fs;

/// An invented card whose links make a ring.
const RING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/ring.toml");

fn parse(text: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(text, options).unwrap_or_else(|error| panic!("{error}:\n{text}"))
}

/// What holds for every page: well-formed, every name given once, no number that is none, nothing from
/// outside, every picture described.
fn check(html: &str) {
    let page = parse(html);
    let mut names = BTreeSet::new();
    for node in page.descendants().filter(|node| node.is_element()) {
        if let Some(id) = node.attribute("id") {
            assert!(names.insert(id), "`{id}` is given twice");
        }
    }
    for node in page.descendants().filter(|node| node.is_element()) {
        let tag = node.tag_name().name();
        assert!(!["script", "link", "img", "iframe", "object", "image", "use"].contains(&tag), "<{tag}>");
        for attribute in node.attributes() {
            let (name, value) = (attribute.name(), attribute.value());
            assert!(!name.starts_with("on"), "{name}");
            if ["href", "aria-labelledby"].contains(&name) {
                for target in value.split(' ') {
                    assert!(names.contains(target.trim_start_matches('#')), "{name}={value} leads nowhere");
                }
            }
            if let Some(inside) = value.strip_prefix("url(") {
                let target = inside.trim_start_matches('#').trim_end_matches(')');
                assert!(names.contains(target), "{value} leads nowhere");
            }
            let drawn = [
                "x",
                "y",
                "d",
                "cx",
                "cy",
                "r",
                "width",
                "height",
                "viewBox",
                "points",
                "transform",
                "style",
            ];
            if drawn.contains(&name) {
                assert!(!value.contains("NaN") && !value.contains("inf"), "<{tag} {name}={value}>");
            }
        }
        if tag == "svg" {
            assert_eq!(node.attribute("role"), Some("img"));
            let first = node.children().find(|child| child.is_element()).expect("a picture is not empty");
            assert_eq!(first.tag_name().name(), "title");
        }
    }
    let style = page.descendants().find(|node| node.has_tag_name("style"));
    let style = page
        .descendants()
        .find(|node| node.tag_name().name() == "style")
        .or(style)
        .and_then(|node| node.text())
        .expect("a page has a style");
    for needed in ["prefers-color-scheme:dark", "@media print"] {
        assert!(style.contains(needed), "{needed}");
    }
    for outside in ["@import", "http", "url("] {
        assert!(!style.contains(outside), "{outside}");
    }
}

fn page(block: PageBlock) -> Page {
    let sections = vec![Section::new("one", "One").with(block)];
    Page { title: "A page".into(), subtitle: "of a test".into(), sections }
}

/// A chart with everything in it.
fn chart() -> Chart {
    Chart {
        title: "Latency of a READ".into(),
        caption: "Unloaded.".into(),
        x: Axis::log2("payload", Ticks::Bytes),
        y: Axis::log10("latency (us)"),
        series: vec![
            Series::line("host", vec![(0.0, 1.5), (64.0, 2.0), (4096.0, 3.0)]).with_band(vec![
                (0.0, 1.4, 1.6),
                (64.0, 1.8, 2.2),
                (4096.0, 2.7, 3.3),
            ]),
            Series::line("soc", vec![(64.0, 1.8), (4096.0, 2.4)]),
        ],
        marks: vec![
            PublishedMark::at(64.0, 2.1).ranged(1.9, 2.3).labelled("row 1").of("host"),
            PublishedMark::at(4096.0, 4.0).labelled("row 2").of("soc").missed(),
            PublishedMark::between(4096.0, 2.8, 3.1).labelled("row 3").of("host"),
        ],
    }
}

#[test]
fn a_small_chart_is_drawn_as_it_was() {
    insta::assert_snapshot!("chart", chart().svg("figure"));
}

#[test]
fn tables_have_every_number() {
    let table = chart().table();
    let heads: Vec<&str> = table.columns.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(heads, ["payload", "host", "host, range", "soc"]);
    assert_eq!(
        table.rows,
        [
            ["0 B", "1.5", "1.4 to 1.6", "-"],
            ["64 B", "2", "1.8 to 2.2", "1.8"],
            ["4 KiB", "3", "2.7 to 3.3", "2.4"]
        ]
    );
    let published = chart().published_table().expect("there are published values");
    assert_eq!(published.rows[1], ["row 2", "soc", "4 KiB", "4", "-", "missed"]);
    assert_eq!(published.rows[2], ["row 3", "host", "4 KiB", "-", "2.8 to 3.1", "within tolerance"]);
}

#[test]
fn published_values_show_what_they_are() {
    let html =
        page(PageBlock::Figure(PublishedChart::new("fig3-latency-read", "wei2023 Fig 3", chart()))).html();
    check(&html);
    let page = parse(&html);
    let classed = |class: &str| {
        page.descendants()
            .filter(|node| node.attribute("class").is_some_and(|own| own.split(' ').any(|c| c == class)))
            .count()
    };
    // One sign more of each in the key.
    assert_eq!(classed("published"), 2 + 2, "a diamond for each value, none for a range alone");
    assert_eq!(classed("whisker"), 2 + 1);
    assert_eq!(classed("miss"), 1 + 1);
    assert!(html.contains("id=\"fig3-latency-read\""));
    assert!(html.contains("Published: wei2023 Fig 3."));
    assert!(html.contains("row 2, soc, at 4 KiB, published 4, missed"));
    for label in ["row 1", "row 2", "row 3"] {
        assert!(html.contains(&format!(">{label}</text>")), "{label}");
    }
    for tick in ["0 B", "64 B", "4 KiB"] {
        assert!(html.contains(&format!(">{tick}</text>")), "{tick}");
    }
}

/// The looks of the samples beside the names: dash and marker of each.
fn looks(chart: &Chart) -> Vec<(String, String)> {
    let svg = chart.svg("chart");
    let picture = parse(&svg);
    let elements: Vec<_> = picture.root_element().children().filter(|node| node.is_element()).collect();
    let named = |name: &str| {
        elements.iter().position(|node| node.tag_name().name() == "text" && node.text() == Some(name))
    };
    chart
        .series
        .iter()
        .map(|series| {
            let at = named(&series.name).unwrap_or_else(|| panic!("`{}` is not named", series.name));
            // A sample is a stroke and a marker, right before the name.
            let (stroke, marker) = (elements[at - 2], elements[at - 1]);
            let filled = !marker.attribute("class").unwrap_or_default().contains("hollow");
            let points = marker.attribute("d").map_or(0, |d| d.matches('L').count());
            let upright = marker.attribute("d").map(|d| {
                let first: Vec<&str> = d.trim_start_matches('M').split(['L', 'Z']).collect();
                let y =
                    |point: &str| point.split(' ').nth(1).and_then(|y| y.parse::<f64>().ok()).unwrap_or(0.0);
                y(first[0]) < y(first[1])
            });
            (
                stroke.attribute("stroke-dasharray").unwrap_or("solid").to_string(),
                format!("{} {filled} {points} {upright:?}", marker.tag_name().name()),
            )
        })
        .collect()
}

#[test]
fn series_differ_without_colour() {
    let series: Vec<Series> = (0..MOST_SERIES)
        .map(|index| {
            Series::line(format!("series {index}"), vec![(0.0, index as f64), (1.0, index as f64 + 1.0)])
        })
        .collect();
    let chart = Chart { series, x: Axis::linear("x"), y: Axis::linear("y"), marks: Vec::new(), ..chart() };
    let looks = looks(&chart);
    assert_eq!(looks.len(), 64);
    assert_eq!(looks.iter().collect::<BTreeSet<_>>().len(), looks.len(), "{looks:?}");
    // The first eight, which most charts need, differ in either alone.
    assert_eq!(looks[..8].iter().map(|look| &look.0).collect::<BTreeSet<_>>().len(), 8);
    assert_eq!(looks[..8].iter().map(|look| &look.1).collect::<BTreeSet<_>>().len(), 8);
}

#[test]
fn bars_differ_without_colour() {
    let series: Vec<Series> = (0..8).map(|index| Series::bars(format!("bars {index}"), [1.0, 2.0])).collect();
    let chart = Chart {
        series,
        x: Axis::categories("posted from", ["host", "soc"]),
        y: Axis::linear("y"),
        marks: vec![],
        ..chart()
    };
    let svg = chart.svg("chart");
    let picture = parse(&svg);
    let fills: BTreeSet<String> = picture
        .descendants()
        .filter(|node| node.tag_name().name() == "pattern")
        .map(|pattern| {
            let strokes = pattern.children().map(|node| {
                let attributes = node.attributes().filter(|one| one.name() != "class");
                attributes.map(|one| format!("{}={}", one.name(), one.value())).collect::<Vec<_>>().join(" ")
            });
            strokes.collect()
        })
        .collect();
    assert_eq!(fills.len(), 8, "{fills:?}");
}

/// Where texts of about equal height stand, none may cover another.
#[test]
fn names_at_line_ends_do_not_overlap() {
    let series: Vec<Series> =
        (0..30).map(|index| Series::line(format!("series {index}"), vec![(1.0, 1.0), (2.0, 5.0)])).collect();
    let chart = Chart { series, x: Axis::linear("x"), y: Axis::linear("y"), marks: Vec::new(), ..chart() };
    let svg = chart.svg("chart");
    let picture = parse(&svg);
    let mut places: Vec<f64> = picture
        .descendants()
        .filter(|node| node.text().is_some_and(|text| text.starts_with("series ")) && node.has_attribute("x"))
        .map(|node| node.attribute("y").and_then(|y| y.parse().ok()).expect("a text has a place"))
        .collect();
    places.sort_by(f64::total_cmp);
    assert_eq!(places.len(), 30);
    assert!(places.windows(2).all(|pair| pair[1] - pair[0] > 12.0), "{places:?}");
    let height: f64 =
        picture.root_element().attribute("height").and_then(|h| h.parse().ok()).expect("a height");
    assert!(places[0] > 0.0 && places[29] < height);
}

const HOSTILE: &str = "</title><script>alert(1)</script>\"'&amp;<!--]]>\u{0}\u{7}\u{feff}\u{202e}";

#[test]
fn hostile_names_stay_text() {
    let mut table = Table::of(&[HOSTILE, HOSTILE]);
    table.caption = HOSTILE.into();
    table.row(vec![HOSTILE.into(), HOSTILE.into()]);
    let lines = Chart {
        title: HOSTILE.into(),
        caption: HOSTILE.into(),
        x: Axis::linear(HOSTILE),
        y: Axis::linear(HOSTILE),
        series: vec![Series::line(HOSTILE, vec![(1.0, 2.0)])],
        marks: vec![PublishedMark::at(1.0, 2.0).labelled(HOSTILE).of(HOSTILE)],
    };
    let bars = Chart {
        x: Axis::categories(HOSTILE, [HOSTILE]),
        series: vec![Series::bars(HOSTILE, [1.0])],
        ..lines.clone()
    };
    let span =
        Span { name: HOSTILE.into(), from: 0.0, to: 1.0, point: None, text: HOSTILE.into(), strong: true };
    let spans = Spans {
        title: HOSTILE.into(),
        caption: HOSTILE.into(),
        axis: HOSTILE.into(),
        text: HOSTILE.into(),
        rows: vec![span],
    };
    let section = Section::new(HOSTILE, HOSTILE)
        .saying(HOSTILE)
        .with(PageBlock::Paragraph(HOSTILE.into()))
        .with(PageBlock::Notes(vec![HOSTILE.into()]))
        .with(PageBlock::Facts(vec![Fact::new(HOSTILE, HOSTILE, HOSTILE)]))
        .with(PageBlock::Table(table))
        .with(PageBlock::Figure(PublishedChart::new(HOSTILE, HOSTILE, lines.clone())))
        .with(PageBlock::Chart(lines))
        .with(PageBlock::Chart(bars))
        .with(PageBlock::Spans(spans));
    let html =
        Page { title: HOSTILE.into(), subtitle: HOSTILE.into(), sections: vec![section.clone(), section] }
            .html();
    check(&html);
    let shown = HOSTILE.replace(['\u{0}', '\u{7}'], "\u{fffd}");
    let page = parse(&html);
    assert!(page.descendants().filter(|node| node.text() == Some(&shown)).count() > 20);
    assert!(!html.contains("<script"));
}

#[test]
fn charts_without_values_are_still_charts() {
    let empty = Chart {
        series: vec![
            Series::line("nothing", vec![]),
            Series::line("no number", vec![(f64::NAN, f64::INFINITY)]),
        ],
        marks: vec![],
        ..chart()
    };
    assert!(empty.svg("a").contains("no values"));
    check(&page(PageBlock::Chart(empty)).html());
    check(
        &page(PageBlock::Chart(Chart {
            series: vec![],
            x: Axis::categories("", [""; 0]),
            marks: vec![],
            ..chart()
        }))
        .html(),
    );
    check(&page(PageBlock::Notes(vec![])).html());
    check(&Page::default().html());
}

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => -1e3..1e6f64,
        1 => prop::num::f64::ANY,
        1 => Just(0.0),
        2 => (0..40i32).prop_map(|power| 2f64.powi(power)),
    ]
}

fn axis() -> impl Strategy<Value = Axis> {
    let name = ".{0,20}";
    (name, 0..4, prop::collection::vec(value(), 0..4), prop::collection::vec(".{0,40}", 0..5), 0..3usize)
        .prop_map(|(label, scale, at, names, ticks)| {
            let ticks = [Ticks::Number, Ticks::Bytes, Ticks::Percent][ticks];
            let axis = match scale {
                0 => Axis::linear(label),
                1 => Axis::log2(label, ticks),
                2 => Axis::log10(label),
                _ => Axis::categories(label, names),
            };
            Axis { at, ..axis.written(ticks) }
        })
}

fn series() -> impl Strategy<Value = Series> {
    let points = prop::collection::vec((value(), value()), 0..12);
    let band = prop::option::of(prop::collection::vec((value(), value(), value()), 0..12));
    (".{0,40}", points, band, any::<bool>()).prop_map(|(name, points, band, bars)| {
        let line = Series::line(name, points);
        Series { band, kind: if bars { Series::bars("", []).kind } else { line.kind }, ..line }
    })
}

fn mark() -> impl Strategy<Value = PublishedMark> {
    (value(), prop::option::of(value()), prop::option::of((value(), value())), ".{0,10}", any::<bool>())
        .prop_map(|(x, y, range, label, within)| PublishedMark { x, y, range, label, series: None, within })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Whatever the values, a drawing has numbers where numbers belong, and is the same every time.
    #[test]
    fn any_chart_is_well_formed(
        x in axis(),
        y in axis(),
        series in prop::collection::vec(series(), 0..6),
        marks in prop::collection::vec(mark(), 0..6),
        title in ".{0,40}",
    ) {
        let chart = Chart { title, caption: String::new(), x, y, series, marks };
        let page = page(PageBlock::Chart(chart));
        let html = page.html();
        check(&html);
        prop_assert_eq!(html, page.html());
    }

    #[test]
    fn any_spans_are_well_formed(rows in prop::collection::vec((".{0,60}", value(), value(), prop::option::of(value())), 0..8)) {
        let rows = rows.into_iter().map(|(name, from, to, point)| {
            Span { text: name.clone(), name, from, to, point, strong: false }
        });
        let rows = rows.collect();
        let (title, caption, axis, text) = ("Spans".into(), String::new(), "time (ns)".into(), "time".into());
        check(&page(PageBlock::Spans(Spans { title, caption, axis, text, rows })).html());
    }
}

#[test]
fn terms_follow_each_other_to_their_sum() {
    let spans = Spans::sum("Terms", "time (ns)", [("a".to_string(), 2.0), ("b".to_string(), 3.0)], |v| {
        format!("{v} ns")
    });
    let ends: Vec<(f64, f64, &str)> =
        spans.rows.iter().map(|row| (row.from, row.to, row.text.as_str())).collect();
    assert_eq!(ends, [(0.0, 2.0, "2 ns"), (2.0, 5.0, "3 ns"), (0.0, 5.0, "5 ns")]);
}

#[test]
fn a_topology_shows_what_is_busy_and_what_binds() {
    let library = Library::builtin();
    let system =
        library.load(&SystemRequest { device: RING, ..SystemRequest::default() }).expect("the ring loads");
    let load = StationLoad {
        shares: [
            ("lane_c.up", 1.0),
            ("lane_c.down", 0.25),
            ("dpa.memory", 0.5),
            ("copy.total", 0.75),
            ("large_transfers_dpa", 0.3),
        ]
        .map(|(name, share)| (name.to_string(), share))
        .into(),
        binding: vec!["lane_c.up (reserved for dpa)".into()],
    };
    let (name, parts) = (SystemAnswer::of(&system), TopologyAnswer::of(&system));
    let topology = Topology::new(&name, &parts, Some(&load));
    let html = page(PageBlock::Topology(topology.clone())).html();
    check(&html);
    // `lane_c` is drawn from the NIC outwards, so `up` points left.
    for words in
        ["← 128 Gbit/s 100% binds", "→ 128 Gbit/s 25%", ">75%<", ">copy total<", "large_transfers_dpa: 30%"]
    {
        assert!(html.contains(words), "{words}");
    }
    assert_eq!(html.matches("class=\"case\"").count(), 1, "one direction binds");
    let table = topology.table.expect("a load has numbers");
    assert_eq!(table.rows[0], ["lane_c.up", "100%", "binds"]);
    assert_eq!(table.marked, BTreeSet::from([0]));
    assert_eq!(table.rows.len(), 5);
    // The clients take no part in this load, and are left out.
    assert!(!html.contains("client.nic"));
    assert!(Topology::new(&name, &parts, None).svg.contains("client.nic"));
}

/// Runs the command line, and returns what it printed and the page that it wrote.
fn written(arguments: &[&str]) -> (String, String) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("page.html");
    let run = |more: &[&str]| {
        let output =
            cargo_bin_cmd!("offpath").args(arguments).args(more).output().expect("the program starts");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text is UTF-8")
    };
    let path = file.to_str().expect("a UTF-8 path");
    let printed = run(&["--html", path]);
    let html = fs::read_to_string(&file).expect("the page is written");
    assert_eq!(run(&["--html", path]), printed);
    assert_eq!(fs::read_to_string(&file).expect("the page is written"), html, "the same bytes twice");
    assert_eq!(printed, run(&[]), "a page changes nothing of what is printed");
    check(&html);
    (printed, html)
}

#[test]
fn a_path_has_a_page() {
    for (device, path, binds) in [("bluefield2", "soc-host", "pcie1"), (RING, "client-dpa", "lane_c")] {
        let (printed, html) = written(&["path", device, "--path", path, "--size", "256KiB"]);
        let binding =
            printed.split("Binds: ").nth(1).and_then(|rest| rest.split(' ').next()).expect("it says");
        assert!(binding.starts_with(binds), "{binding}");
        assert!(html.contains(&format!("<strong>{binding}</strong>")), "{binding}");
        assert!(html.contains("100% binds"), "{binding} is marked in the topology");
        for chart in
            ["Unloaded latency of a READ", "in requests", "in payload bits", "each term where the one before"]
        {
            assert!(html.contains(chart), "{chart}");
        }
        for label in ["latency (us)", "throughput (Mreq/s)", "throughput (Gbit/s)", "time (ns)"] {
            assert!(html.contains(&format!(">{label}</text>")), "{label}");
        }
    }
    let (_, every) = written(&["path", "bluefield2", "--verb", "write"]);
    for path in ["client-soc", "client-host", "soc-host", "host-soc", "soc-host-dma", "host-soc-dma"] {
        assert!(every.contains(&format!(">{path}</text>")), "{path} has no line");
    }
    // Verbs without a curve, and without every payload.
    for verb in ["fetch-and-add", "send-ud"] {
        written(&["path", "bluefield2", "--path", "client-soc", "--verb", verb, "--size", "8B"]);
    }
}

#[test]
fn a_band_holds_its_curve() {
    let (_, html) = written(&["path", "bluefield2", "--path", "client-soc"]);
    let page = parse(&html);
    let (mut banded, mut rows) = (0, 0);
    for table in page.descendants().filter(|node| node.tag_name().name() == "table") {
        let heads: Vec<&str> = table
            .descendants()
            .filter(|node| node.tag_name().name() == "th")
            .filter_map(|node| node.text())
            .collect();
        if heads != ["payload", "client-soc", "client-soc, range"] {
            continue;
        }
        banded += 1;
        for row in table.descendants().filter(|node| node.tag_name().name() == "tr").skip(1) {
            let cells: Vec<&str> =
                row.children().filter(|node| node.is_element()).filter_map(|node| node.text()).collect();
            let (low, high) = cells[2].split_once(" to ").expect("a range");
            let [value, low, high] = [cells[1], low, high].map(|text| text.parse::<f64>().expect("a number"));
            assert!(low <= value && value <= high, "{cells:?}");
            rows += usize::from(low < high);
        }
    }
    assert_eq!(banded, 3);
    assert!(rows > 20, "only {rows} payloads have a range");
}

#[test]
fn a_plan_has_a_page() {
    let design = concat!(env!("CARGO_MANIFEST_DIR"), "/../../designs/replication.toml");
    let (_, html) = written(&["plan", design]);
    for words in [
        "gain over greedy",
        "on the loaded twin",
        "Shares of the requests",
        "best mix",
        "Throughput by ratio",
        "Throughput of few clients",
        "next: ",
    ] {
        assert!(html.contains(words), "{words}");
    }
    for label in ["throughput (Gbit/s)", "share of requests", "latency (us)", "clients", "ratio"] {
        assert!(html.contains(&format!(">{label}</text>")), "{label}");
    }
    assert!(html.contains(" binds: "), "what binds is said");
    assert!(
        html.contains("class=\"binding\"") || html.contains("class=\"case\""),
        "what binds is marked in the topology"
    );
}

/// What a plan says against its answer stands on the page too, and a load is not compared with what another card
/// carries at most.
#[test]
fn a_page_at_a_load_says_in_how_many_draws_it_is_carried() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("own.toml");
    let text = "[design]\nname = \"own\"\ndevice = \"bluefield2\"\nobjective = \"most-throughput\"\n\
                rank_by = \"throughput\"\n\
                [[alternative]]\nname = \"card\"\nrequest = [{ read = \"client-soc\", bytes = \"64 B\" }]\n\
                [[alternative]]\nname = \"plain\"\ndevice = \"connectx6\"\n\
                request = [{ read = \"client-host\", bytes = \"64 B\" }]\n";
    std::fs::write(&file, text).expect("it is written");
    let design = file.to_str().expect("a UTF-8 path");
    let (_, most) = written(&["plan", design]);
    assert!(most.contains("this or more in") && most.contains("over the plain NIC"), "{most}");
    let (_, loaded) = written(&["plan", design, "--goal", "least-host-cpu", "--load", "100M/s"]);
    assert!(loaded.contains("these very shares carry 100 M req/s in"), "{loaded}");
    assert!(!loaded.contains("over the plain NIC"), "{loaded}");
}

/// Whoever sends the page sends what the terminal says: its remarks stand there word by word.
#[test]
fn a_page_has_every_remark_of_the_terminal() {
    let said_of = |arguments: &[&str], begins: &[&str]| {
        let (_, html) = written(arguments);
        let shown = cargo_bin_cmd!("offpath")
            .args([arguments, &["--format", "markdown"]].concat())
            .output()
            .expect("the program starts");
        let text = String::from_utf8(shown.stdout).expect("it is text");
        for begin in begins {
            let line = text.lines().find(|line| line.starts_with(begin));
            let line = line.unwrap_or_else(|| panic!("no line `{begin}`:\n{text}"));
            assert!(html.contains(&offpath::report::escape(line)), "{line}");
        }
    };
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("own.toml");
    // Two alternatives that are one: a tie. The host's processor is full at the load.
    let text = "[design]\nname = \"own\"\ndevice = \"bluefield2\"\nobjective = \"least-host-cpu\"\n\
                offered_load = \"10.6 M/s\"\nrank_by = \"throughput\"\n\
                [[alternative]]\nname = \"one\"\ndescription = \"d\"\nrequest = [{ compute = \"host\", time = \"2.2 us\" }]\n\
                [[alternative]]\nname = \"other\"\ndescription = \"d\"\nrequest = [{ compute = \"host\", time = \"2.2 us\" }]\n";
    std::fs::write(&file, text).expect("it is written");
    let own = file.to_str().expect("a UTF-8 path");
    said_of(
        &["plan", own],
        &["host processor time a request", "takes ", "tie:", "busiest at this load", "near capacity"],
    );
    let store = concat!(env!("CARGO_MANIFEST_DIR"), "/../../designs/kv-batching.toml");
    said_of(&["plan", store, "--set", "soc.cores=7"], &["soc.cores:", "the best mix goes from"]);
}

#[test]
fn a_page_that_cannot_be_written_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("nowhere").join("page.html");
    let output = cargo_bin_cmd!("offpath")
        .args(["path", "bluefield2", "--path", "client-soc", "--html", file.to_str().expect("a UTF-8 path")])
        .output()
        .expect("the program starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write"));
}
