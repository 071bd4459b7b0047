//! The style of a page and of its drawings: one set of names for colours, and what they are on a
//! light and a dark screen. Paper is light.

/// Colours by name: on a light screen and on a dark one. Each contrasts with the page by at least
/// 4.5 to 1 as text and 3 to 1 as a line. None has a meaning of its own.
const COLOURS: [(&str, &str, &str); 13] = [
    ("page", "#ffffff", "#14181c"),
    ("raised", "#f3f5f7", "#20262c"),
    ("ink", "#1b1f24", "#e8ebee"),
    ("soft", "#4b535d", "#b3bbc4"),
    ("grid", "#dde1e6", "#333b43"),
    ("series-0", "#1f5fa8", "#7ab6ff"),
    ("series-1", "#b3420a", "#ff9f6b"),
    ("series-2", "#1b7a4b", "#6fd6a0"),
    ("series-3", "#8a3a9a", "#d8a2ea"),
    ("series-4", "#8a6400", "#e6c35c"),
    ("series-5", "#0b7285", "#66d0e0"),
    ("series-6", "#a61e4d", "#ff8fb1"),
    ("series-7", "#4b535d", "#b3bbc4"),
];

/// How many colours series have before they come again.
pub const SERIES_COLOURS: usize = 8;

const CHART: &str = "\
.chart text{font-family:system-ui,'Helvetica Neue',Arial,sans-serif;font-size:12px;fill:var(--ink)}
.chart .small{fill:var(--soft)}
.chart .strong{font-weight:bold}
.chart .frame{stroke:var(--soft);fill:none}
.chart .grid{stroke:var(--grid);fill:none}
.chart .leader{stroke:var(--soft);fill:none;stroke-width:.75}
.chart .line{fill:none;stroke-width:2;stroke-linejoin:round}
.chart .edge{fill:none;stroke-width:.75;opacity:.7}
.chart .band{stroke:none;opacity:.13}
.chart .hollow{fill:var(--page);stroke-width:1.75}
.chart .whisker{fill:none;stroke:var(--ink);stroke-width:1.5}
.chart .halo{fill:none;stroke:var(--page);stroke-width:4.5}
.chart .published{fill:var(--page);stroke:var(--ink);stroke-width:1.5}
.chart .miss{fill:none;stroke:var(--ink);stroke-width:2}
.chart .bar{stroke-width:1.25}
.chart .span{fill:var(--raised);stroke:var(--ink);stroke-width:1.25}
.chart .span.strong{fill:var(--soft)}
";

const TOPOLOGY: &str = "\
.topology text{font-family:ui-monospace,'DejaVu Sans Mono',monospace;font-size:13px;fill:var(--ink)}
.topology .title{font-size:14px;font-weight:bold}
.topology .name{font-weight:bold}
.topology .small{fill:var(--soft)}
.topology .page{fill:var(--page)}
.topology .box{fill:var(--raised);stroke:var(--soft);stroke-width:1.5}
.topology .bar{stroke:var(--soft);stroke-width:1.5;fill:none}
.topology .tip{fill:var(--soft)}
.topology .gauge{fill:var(--page);stroke:var(--soft)}
.topology .filled{fill:var(--soft)}
.topology .binding .box,.topology .binding .gauge{stroke:var(--ink);stroke-width:3.5}
.topology .binding .filled{fill:var(--ink)}
.topology .case{stroke:var(--ink);fill:none}
.topology .core{stroke:var(--page);fill:none}
";

const PAGE: &str = "\
body{margin:0;background:var(--page);color:var(--ink);font:16px/1.5 system-ui,'Helvetica Neue',Arial,sans-serif}
header,nav,main,footer{max-width:60rem;margin:0 auto;padding:0 1rem}
h1{font-size:1.6rem;line-height:1.25;margin:1.5rem 0 .25rem}
h2{font-size:1.25rem;margin:2.5rem 0 .5rem;padding-top:.5rem;border-top:1px solid var(--grid)}
h1,h2,p,li,dd,figcaption{overflow-wrap:anywhere}
a{color:var(--series-0)}
.subtitle,.caption,footer{color:var(--soft)}
nav ul{columns:18rem;padding-left:1.2rem;margin:.5rem 0}
figure{margin:1.5rem 0;break-inside:avoid}
figcaption{margin-bottom:.5rem}
figcaption strong{display:block}
.picture{overflow-x:auto}
.picture svg{display:block;height:auto;max-width:100%;min-width:34rem}
.picture svg.chart{width:100%}
details{margin:.25rem 0}
summary{color:var(--soft);cursor:pointer}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:.875rem;margin:.5rem 0}
th,td{text-align:left;vertical-align:top;padding:.2rem .75rem .2rem 0;border-bottom:1px solid var(--grid)}
th{color:var(--soft);font-weight:normal}
.number{text-align:right;font-variant-numeric:tabular-nums}
td.number{white-space:nowrap}
tr.marked td{font-weight:bold}
dl{display:grid;grid-template-columns:repeat(auto-fit,minmax(13rem,1fr));gap:1rem;margin:1rem 0}
dl div{border-left:4px solid var(--soft);padding-left:.75rem}
dt{color:var(--soft);font-size:.875rem}
dd{margin:0}
dd strong{font-size:1.35rem;line-height:1.3;display:block}
";

const PAPER: &str = "\
html{font-size:9.5pt}
body{font-size:1rem;line-height:1.4}
h2{margin-top:1.5rem}
figure{margin:.75rem 0}
header,nav,main,footer{max-width:none;padding:0}
nav{display:none}
.picture{overflow:visible}
.picture svg,.picture svg.chart{min-width:0;width:auto;max-width:100%;max-height:8.5cm}
.picture svg.topology{max-height:14cm}
a{color:inherit;text-decoration:none}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}
h2{break-after:avoid}
tr{break-inside:avoid}
";

fn series_rules() -> String {
    (0..SERIES_COLOURS)
        .map(|index| {
            format!(".s{index}{{stroke:var(--series-{index});color:var(--series-{index})}}.f{index}{{fill:var(--series-{index})}}\n")
        })
        .collect()
}

fn root(dark: bool) -> String {
    let colours: Vec<String> = COLOURS
        .iter()
        .map(|(name, light, night)| format!("--{name}:{}", if dark { night } else { light }))
        .collect();
    format!(":root{{color-scheme:{};{}}}\n", if dark { "dark" } else { "light" }, colours.join(";"))
}

/// The style of a page with drawings in it.
pub fn page() -> String {
    let rules = [PAGE, CHART, TOPOLOGY].concat() + &series_rules();
    format!(
        "{}@media (prefers-color-scheme:dark){{{}}}\n{rules}@media print{{{}{PAPER}}}\n",
        root(false),
        root(true),
        root(false)
    )
}

/// The style of a topology in a file of its own, with every colour spelled out: programs that draw
/// SVG files do not all know named colours.
pub fn topology() -> String {
    let named = |dark: bool| {
        COLOURS.iter().fold(TOPOLOGY.to_string(), |style, (name, light, night)| {
            style.replace(&format!("var(--{name})"), if dark { night } else { light })
        })
    };
    format!("{}@media (prefers-color-scheme:dark){{{}}}", named(false), named(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance of `#rrggbb` (WCAG 2).
    fn luminance(colour: &str) -> f64 {
        let part = |at: usize| {
            let value = u8::from_str_radix(&colour[at..at + 2], 16).expect("two hexadecimal digits");
            let share = f64::from(value) / 255.0;
            if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn everything_contrasts_with_its_page() {
        let (_, white, black) = COLOURS[0];
        for (name, light, dark) in &COLOURS[2..] {
            let least = if *name == "grid" { 1.2 } else { 4.5 };
            assert!(contrast(light, white) >= least, "{name} on a light page");
            assert!(contrast(dark, black) >= least, "{name} on a dark page");
        }
    }

    #[test]
    fn every_named_colour_exists() {
        let style = page();
        let mut used = 0;
        for part in style.split("var(--").skip(1) {
            let name = part.split(')').next().expect("a name ends");
            assert!(COLOURS.iter().any(|(own, _, _)| *own == name), "{name}");
            used += 1;
        }
        assert!(used > 30);
        assert!(!topology().contains("var("));
        assert_eq!(style.matches('{').count(), style.matches('}').count());
    }
}
