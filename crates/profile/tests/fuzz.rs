//! Damaged profiles are loaded or refused, never a panic, and a refusal can always be printed.

use miette::{GraphicalReportHandler, GraphicalTheme};
use offpath_profile::{Category, Library, SystemRequest};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Damage {
    DropLine(usize),
    RepeatLine(usize),
    SwapLines(usize, usize),
    DropByte(usize),
    PutByte(usize, u8),
    Cut(usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let place = 0usize..100_000;
    prop_oneof![
        place.clone().prop_map(Damage::DropLine),
        place.clone().prop_map(Damage::RepeatLine),
        (place.clone(), place.clone()).prop_map(|(a, b)| Damage::SwapLines(a, b)),
        place.clone().prop_map(Damage::DropByte),
        (place.clone(), prop_oneof![32u8..127, any::<u8>()]).prop_map(|(at, byte)| Damage::PutByte(at, byte)),
        place.prop_map(Damage::Cut),
    ]
}

fn damaged(text: &str, damages: &[Damage]) -> String {
    let mut text = text.to_string();
    for damage in damages {
        let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
        let mut bytes = text.clone().into_bytes();
        let (line_count, byte_count) = (lines.len().max(1), bytes.len().max(1));
        if text.is_empty() {
            continue;
        }
        let of_lines = |lines: Vec<String>| lines.join("\n").into_bytes();
        bytes = match damage {
            Damage::DropLine(at) => {
                lines.remove(at % line_count);
                of_lines(lines)
            }
            Damage::RepeatLine(at) => {
                let line = lines[at % line_count].clone();
                lines.push(line);
                of_lines(lines)
            }
            Damage::SwapLines(a, b) => {
                lines.swap(a % line_count, b % line_count);
                of_lines(lines)
            }
            Damage::DropByte(at) => {
                bytes.remove(at % byte_count);
                bytes
            }
            Damage::PutByte(at, byte) => {
                bytes[at % byte_count] = *byte;
                bytes
            }
            Damage::Cut(at) => {
                bytes.truncate(at % byte_count);
                bytes
            }
        };
        text = String::from_utf8_lossy(&bytes).into_owned();
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn damaged_profiles_never_panic(which in 0usize..1000, damages in prop::collection::vec(damage(), 1..4)) {
        let mut library = Library::builtin();
        let all: Vec<(Category, String)> = Category::ALL
            .into_iter()
            .flat_map(|category| library.names(category).into_iter().map(move |listed| (category, listed.name)))
            .collect();
        let (category, name) = &all[which % all.len()];
        let text = damaged(library.source(*category, name).unwrap(), &damages);
        library.insert(*category, name, &text);
        let device = if *category == Category::Device { name } else { "bluefield2" };
        let testbed = (*category == Category::Testbed).then_some(name.as_str());
        let overlays = if *category == Category::Overlay { vec![name.as_str()] } else { Vec::new() };
        for mode in [None, Some("nic")] {
            let request = SystemRequest { device, testbed, mode, overlays: overlays.clone(), settings: Vec::new(), ..SystemRequest::default() };
            match library.load(&request) {
                Ok(system) => {
                    for (machine, endpoint) in system.endpoints() {
                        prop_assert!(machine.hops(&machine.nic.name, &endpoint.name).is_ok());
                    }
                }
                Err(error) => {
                    let mut text = String::new();
                    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor());
                    handler.render_report(&mut text, &error).unwrap();
                    prop_assert!(!error.next_step().is_empty() && error.place().is_some(), "{error:?}");
                }
            }
        }
    }

    #[test]
    fn any_setting_is_applied_or_refused(text in "\\PC{0,30}", name in 0usize..1000, value in "\\PC{0,12}") {
        let library = Library::builtin();
        let device = "bluefield2";
        let names: Vec<String> =
            library.load(&SystemRequest { device, ..SystemRequest::default() }).unwrap().numbers.into_keys().collect();
        for setting in [text, format!("{}={value}", names[name % names.len()])] {
            let _ = library.load(&SystemRequest { device, settings: vec![setting], ..SystemRequest::default() });
        }
    }
}
