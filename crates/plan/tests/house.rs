//! The house rules that no compiler checks: which crate may use which, that devices are data and
//! never code, and that every committed file is clean and every link leads somewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// What each crate may use of ours, as the table of ARCHITECTURE.md says: the first column names the crate, the
/// last what it may use. A crate that is not there is refused until its place is decided.
fn may_use() -> BTreeMap<&'static str, Vec<&'static str>> {
    let quoted = |cell: &'static str| cell.split('`').skip(1).step_by(2);
    let rows = include_str!("../../../ARCHITECTURE.md").lines().filter_map(move |line| {
        let cells: Vec<&str> = line.strip_prefix("| `")?.trim_end_matches(" |").split(" | ").collect();
        let [name, _, used] = cells[..] else { return None };
        Some((name.trim_end_matches('`'), quoted(used).collect()))
    });
    rows.collect()
}

/// What tests alone may use beside: applications never know their backend, but their tests run in one, and so do
/// those of a backend that runs them.
const TESTS_MAY_USE: &[(&str, &[&str])] = &[
    ("apps", &["profile", "route", "twin"]),
    ("learn", &["twin"]),
    ("measure", &["profile", "twin"]),
    ("verbs", &["apps", "workload"]),
];

/// Crates that know machines as data alone.
const BELOW_PLAN: &[&str] = &[
    "quantity",
    "profile",
    "route",
    "capacity",
    "logs",
    "fabric",
    "conformance",
    "verbs",
    "twin",
    "workload",
    "apps",
    "learn",
    "measure",
    "terminal",
];

/// Names of devices, of their paths, and of papers.
const NAMES: &[&str] = &[
    "bluefield",
    "connectx",
    "stingray",
    "liquidio",
    "client-soc",
    "client-host",
    "soc-host",
    "host-soc",
    "wei2022",
    "wei2023",
    "sun2023",
    "liu2019",
    "dpa2024",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace exists")
}

/// Every committed file, or every file where the sources came without their history.
fn files() -> Vec<PathBuf> {
    let root = root();
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(&root).output();
    let mut files: Vec<PathBuf> = match listed {
        Ok(output) if output.status.success() && !output.stdout.is_empty() => {
            let names = String::from_utf8(output.stdout).expect("names are UTF-8");
            // A file that is deleted but not yet committed is listed and gone.
            names.split_terminator('\0').map(PathBuf::from).filter(|file| root.join(file).exists()).collect()
        }
        _ => {
            let mut found = Vec::new();
            walk(&root, Path::new(""), &mut found);
            found
        }
    };
    files.sort();
    assert!(files.len() > 50, "only {} files were found, so nothing would be checked", files.len());
    files
}

fn walk(root: &Path, under: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(root.join(under)).expect("the folder can be read") {
        let entry = entry.expect("the entry can be read");
        let name = entry.file_name();
        let path = under.join(&name);
        if entry.path().is_file() {
            found.push(path);
        } else if name != "target" && name != ".git" {
            walk(root, &path, found);
        }
    }
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// The manifests of our crates, by crate.
fn manifests() -> BTreeMap<String, toml::Table> {
    let mut found = BTreeMap::new();
    for file in files() {
        let parts: Vec<&str> = file.iter().filter_map(|part| part.to_str()).collect();
        if let ["crates" | "services", folder, "Cargo.toml"] = parts[..] {
            found.insert(folder.to_string(), read(&file).parse().expect("a manifest is TOML"));
        }
    }
    found
}

/// The crates of ours that a table of dependencies names, without their prefix.
fn ours(table: &toml::Table, key: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let tables = std::iter::once(table).chain(
        table
            .get("target")
            .and_then(toml::Value::as_table)
            .into_iter()
            .flatten()
            .filter_map(|(_, t)| t.as_table()),
    );
    for dependencies in tables.filter_map(|table| table.get(key)?.as_table()) {
        for (name, value) in dependencies {
            let package = value.get("package").and_then(toml::Value::as_str).unwrap_or(name);
            if let Some(short) = package.strip_prefix("offpath-") {
                found.insert(short.to_string());
            } else if package == "offpath" {
                found.insert(package.to_string());
            }
        }
    }
    found
}

#[test]
fn crates_use_only_what_lies_below_them() {
    let may_use = may_use();
    let mut wrong = Vec::new();
    for (folder, manifest) in manifests() {
        let Some(allowed) = may_use.get(folder.as_str()) else {
            wrong.push(format!(
                "`{folder}` has no place in the table of ARCHITECTURE.md; decide what it may use"
            ));
            continue;
        };
        let name = manifest["package"]["name"].as_str().unwrap_or_default();
        let expected = if folder == "offpath" { folder.clone() } else { format!("offpath-{folder}") };
        if name != expected {
            wrong.push(format!("`{folder}` is named `{name}`; name it `{expected}`"));
        }
        for key in ["dependencies", "build-dependencies", "dev-dependencies"] {
            for used in ours(&manifest, key) {
                // A backend's own test runs the common body of tests.
                let in_tests =
                    TESTS_MAY_USE.iter().any(|(by, all)| *by == folder && all.contains(&used.as_str()));
                let testing = key == "dev-dependencies" && (used == "conformance" || in_tests);
                if !allowed.contains(&used.as_str()) && !testing {
                    wrong.push(format!("`{folder}` has `{used}` in [{key}], and may use {allowed:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The lines that are code: no doc comments, and nothing that exists for tests alone.
fn code(text: &str) -> Vec<(usize, &str)> {
    let mut lines = text.lines().enumerate().peekable();
    let mut found = Vec::new();
    while let Some((number, line)) = lines.next() {
        let trimmed = line.trim_start();
        if trimmed.starts_with("///") || trimmed.starts_with("//!") {
            continue;
        }
        if !trimmed.starts_with("#[cfg(test)]") {
            found.push((number + 1, line));
            continue;
        }
        // The item that the attribute stands before ends at a semicolon or its last brace.
        let (mut depth, mut opened) = (0i64, false);
        for (_, line) in lines.by_ref() {
            depth += line.matches('{').count() as i64 - line.matches('}').count() as i64;
            opened |= line.contains('{');
            if depth <= 0 && (opened || line.trim_end().ends_with(';')) {
                break;
            }
        }
    }
    found
}

#[test]
fn only_code_lines_are_looked_at() {
    let text =
        "//! bluefield\n/// bluefield\nfn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
    assert_eq!(code(text), [(3, "fn a() {}"), (8, "fn c() {}")]);
    assert_eq!(code("#[cfg(test)]\nmod tests;\nfn c() {}\n"), [(3, "fn c() {}")]);
}

/// An example in a message is not knowledge of a device; nothing else is excused.
const EXAMPLES: &[(&str, &str)] = &[
    ("crates/route/src/path.rs", "as in `client-soc` or `soc-host-dma`"),
    ("crates/learn/src/expect.rs", "as in `soc-host-dma`"),
    ("crates/profile/src/schema.rs", r#""\"client-host\"""#),
];

#[test]
fn devices_paths_and_papers_are_data() {
    let mut wrong = Vec::new();
    let mut looked_at = 0;
    for file in files() {
        let parts: Vec<&str> = file.iter().filter_map(|part| part.to_str()).collect();
        let ["crates", folder, "src", ..] = parts[..] else { continue };
        // The list of shipped profiles has to name them.
        let shipped = file == Path::new("crates/profile/src/builtin.rs");
        if !BELOW_PLAN.contains(&folder) || shipped || !parts.last().is_some_and(|name| name.ends_with(".rs"))
        {
            continue;
        }
        looked_at += 1;
        let text = read(&file);
        for (number, line) in code(&text) {
            let excused = EXAMPLES.iter().any(|(at, part)| file == Path::new(at) && line.contains(part));
            let lower = line.to_lowercase();
            if let Some(name) = NAMES.iter().find(|name| lower.contains(**name))
                && !excused
            {
                wrong.push(format!("{}:{number} names `{name}`: {}", file.display(), line.trim()));
            }
        }
    }
    assert!(looked_at > 20, "only {looked_at} sources were found");
    assert!(wrong.is_empty(), "what only a profile or a design may know:\n{}", wrong.join("\n"));
}

/// What names a system in code: its folder of `apps`, which declares it in `about.rs`.
fn systems() -> Vec<String> {
    let declared = files().into_iter().filter_map(|file| {
        let parts: Vec<&str> = file.iter().filter_map(|part| part.to_str()).collect();
        let ["crates", "apps", "src", folder, "about.rs"] = parts[..] else { return None };
        Some(folder.to_string())
    });
    declared.collect()
}

/// Whether a line of code names a system: as a module, or as a text of its own.
fn names_system(line: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let is_module = line.match_indices(name).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + name.len()..]);
        !before.ends_with(is_part) && (after.starts_with("::") || before.ends_with("apps::"))
    });
    is_module || line.contains(&format!("\"{name}\""))
}

#[test]
fn systems_are_found_in_their_list_alone() {
    assert!(names_system("use offpath::apps::kv;", "kv") && names_system("kv::Options", "kv"));
    assert!(names_system("\"kv\" => store(),", "kv"));
    assert!(!names_system("offpath run kv --on local", "kv") && !names_system("\"kv-batching\"", "kv"));
    let systems = systems();
    assert!(systems.len() > 1, "{systems:?}");
    let mut wrong = Vec::new();
    for file in files() {
        let parts: Vec<&str> = file.iter().filter_map(|part| part.to_str()).collect();
        let ["crates", folder, "src", ..] = parts[..] else { continue };
        if folder == "apps" || !parts.last().is_some_and(|name| name.ends_with(".rs")) {
            continue;
        }
        for (number, line) in code(&read(&file)) {
            if let Some(name) = systems.iter().find(|name| names_system(line, name)) {
                wrong.push(format!("{}:{number} names `{name}`: {}", file.display(), line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "what only its own folder of `apps` may know:\n{}", wrong.join("\n"));
}

#[test]
fn committed_files_are_clean() {
    // Written in parts, so that this file does not contain what it forbids.
    let paths = [["/", "work/"], ["/", "root/"], ["/", "home/"], ["/", "Users/"]].map(|parts| parts.concat());
    let mut wrong = Vec::new();
    for file in files() {
        let bytes = std::fs::read(root().join(&file)).expect("a listed file can be read");
        if bytes.contains(&0) {
            continue;
        }
        let name = file.display();
        if bytes.contains(&b'\r') {
            wrong.push(format!("{name} has a carriage return; lines end with LF alone"));
        }
        if !bytes.is_empty() && !bytes.ends_with(b"\n") {
            wrong.push(format!("{name} does not end with a line end"));
        }
        let text = String::from_utf8_lossy(&bytes);
        for (number, line) in text.lines().enumerate() {
            if let Some(path) = paths.iter().find(|path| line.contains(path.as_str())) {
                wrong.push(format!("{name}:{} has the machine path `{path}`", number + 1));
            }
            let source = line.strip_prefix("source = \"").filter(|_| file == Path::new("Cargo.lock"));
            if source.is_some_and(|source| {
                !source.starts_with("registry+https://github.com/rust-lang/crates.io-index")
            }) {
                wrong.push(format!("{name}:{} takes a crate from elsewhere than crates.io", number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Cargo builds a crate once more for each set of features that is asked of it, and with it all that uses it.
/// What a test prints that passes is captured, so that one which was skipped would read as passed: it is written to standard
/// error itself. Tests with a `main` of their own have no capture.
#[test]
fn what_is_skipped_says_so_past_the_capture_of_output() {
    let mut found = Vec::new();
    for file in files().into_iter().filter(|file| file.extension().is_some_and(|end| end == "rs")) {
        let text = read(&file);
        for (at, line) in text.lines().enumerate().filter(|_| text.contains("#[test]")) {
            if ["println!(\"skipped", "eprintln!(\"skipped"]
                .iter()
                .any(|said| line.trim_start().starts_with(said))
            {
                found.push(format!("{}:{}", file.display(), at + 1));
            }
        }
    }
    assert!(found.is_empty(), "these are captured where the test passes: {found:#?}");
}

#[test]
fn the_command_line_is_built_of_what_its_tests_are_built_of() {
    let built_of = |selection: &[&str]| -> BTreeSet<String> {
        let tree = ["tree", "--frozen", "--prefix=none", "--format={p} [{f}]"];
        let output = Command::new(env!("CARGO")).args(tree).args(selection).current_dir(root()).output();
        let output = output.expect("cargo runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("crates have names in UTF-8");
        text.lines().map(|line| line.trim_end_matches(" (*)").to_string()).collect()
    };
    let tests = built_of(&["--workspace", "--edges=normal,build,dev"]);
    let program = built_of(&["--package=offpath", "--edges=normal,build"]);
    assert!(program.len() > 50, "only {} crates were found", program.len());
    let twice: Vec<&String> = program.difference(&tests).collect();
    assert!(
        twice.is_empty(),
        "tests ask for more features of these; ask for them in crates/offpath/Cargo.toml too: {twice:#?}"
    );
}

#[test]
fn every_crate_has_the_licences() {
    let workspace: toml::Table = read(Path::new("Cargo.toml")).parse().expect("a manifest is TOML");
    assert_eq!(workspace["workspace"]["package"]["license"].as_str(), Some("MIT OR Apache-2.0"));
    for (folder, manifest) in manifests() {
        let license = &manifest["package"]["license"];
        let inherited = license.get("workspace").and_then(toml::Value::as_bool) == Some(true);
        let own = license.as_str() == Some("MIT OR Apache-2.0");
        assert!(inherited || own, "{folder}: write `license.workspace = true`");
    }
    for file in ["LICENSE-MIT", "LICENSE-APACHE"] {
        assert!(root().join(file).is_file(), "{file} is missing");
    }
}

/// The targets of the links of a Markdown text, outside code.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        if fenced {
            continue;
        }
        // Every second part lies between backticks.
        let outside: Vec<&str> = line.split('`').step_by(2).collect();
        for part in outside.join("``").split("](").skip(1) {
            if let Some(end) = part.find(')') {
                let target = part[..end].split_whitespace().next().unwrap_or_default();
                found.push((number + 1, target.to_string()));
            }
        }
    }
    found
}

fn resolve(file: &Path, target: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for part in file.parent().unwrap_or(Path::new("")).join(target).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            other => path.push(other),
        }
    }
    path
}

#[test]
fn links_lead_somewhere() {
    assert_eq!(
        links("[a](b.md#c) `[d](e)` [f `g`](h)\n```\n[i](j)\n```\n"),
        [(1, "b.md#c".into()), (1, "h".into())]
    );
    let mut wrong = Vec::new();
    for file in files() {
        if file.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        for (number, target) in links(&read(&file)) {
            let elsewhere =
                ["http://", "https://", "mailto:", "#"].iter().any(|start| target.starts_with(start));
            let plain = target.split('#').next().unwrap_or_default();
            if !elsewhere && !root().join(resolve(&file, plain)).exists() {
                wrong.push(format!("{}:{number} links to `{target}`, which does not exist", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_model_page_is_in_the_index() {
    let index = Path::new("docs/README.md");
    let linked: BTreeSet<PathBuf> =
        links(&read(index)).into_iter().map(|(_, target)| resolve(index, &target)).collect();
    let pages: Vec<PathBuf> = files().into_iter().filter(|file| file.starts_with("docs/models")).collect();
    assert!(!pages.is_empty(), "there are no model pages");
    for page in pages {
        assert!(linked.contains(&page), "docs/README.md does not link {}", page.display());
    }
}

/// Names of types in quoted words of a text: those that begin with an uppercase letter and have a lowercase one.
fn type_names(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (number, line) in text.lines().enumerate() {
        fenced ^= line.trim_start().starts_with("```");
        // Every second part lies between backticks; what has a blank or is a label's value is no name of code.
        for part in line.split('`').skip(1).step_by(2).filter(|part| !fenced && !part.contains([' ', '"'])) {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            for word in part.split(|c: char| !is_part(c)) {
                let begins = word.starts_with(|c: char| c.is_ascii_uppercase());
                if begins && word.chars().any(|c| c.is_ascii_lowercase()) {
                    found.push((number + 1, word.to_string()));
                }
            }
        }
    }
    found
}

/// A page that names a type which the code calls otherwise leads nowhere.
#[test]
fn pages_name_types_that_exist() {
    assert_eq!(
        type_names("`Options::of(Rate)` `RC`, `A1`\n```\n`None`\n```\nno `the Words`"),
        [(1, "Options".into()), (1, "Rate".into())]
    );
    // Names of files, and of others.
    const OTHERS: &[&str] = &["Cargo", "VL15_dropped"];
    let mut known: BTreeSet<String> = OTHERS.iter().map(|name| name.to_string()).collect();
    let sources = files().into_iter().filter(|file| file.extension().is_some_and(|end| end == "rs"));
    for text in sources.map(|file| read(&file)) {
        for line in text.lines() {
            // A public type, or a variant of an enum, which stands alone on its line.
            let declared = ["struct ", "enum ", "trait ", "type "]
                .into_iter()
                .find_map(|kind| line.trim_start().strip_prefix("pub ")?.strip_prefix(kind));
            let is_variant = |rest: &&str| rest.starts_with(|c: char| c.is_ascii_uppercase());
            let Some(rest) = declared.or(line.strip_prefix("    ").filter(is_variant)) else { continue };
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
            known.insert(rest[..end].to_string());
        }
    }
    let is_page = |file: &PathBuf| {
        file == Path::new("ARCHITECTURE.md")
            || file.starts_with("docs") && file.extension().is_some_and(|end| end == "md")
    };
    let mut wrong = Vec::new();
    for page in files().into_iter().filter(is_page) {
        for (number, name) in type_names(&read(&page)) {
            if !known.contains(&name) {
                wrong.push(format!("{}:{number} names `{name}`, which no source declares", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The rows of a table of docs/vocabulary.md below a heading, by cells.
fn vocabulary(heading: &str) -> Vec<Vec<String>> {
    let page = read(Path::new("docs/vocabulary.md"));
    let section =
        page.split("\n## ").find_map(|section| section.strip_prefix(heading)).expect("it has the section");
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| row.trim_matches(['|', ' ']).split(" | ").map(|cell| cell.trim().to_string()).collect())
        .collect()
}

/// What stands in backticks.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_string).collect()
}

/// A word in small letters.
struct Word {
    line: usize,
    text: String,
    /// Whether it goes on from the word before it: nothing but space, comment signs, `_`, `-` or a hump is between.
    follows: bool,
}

/// The words of a text: names of code fall apart at humps and marks.
fn words(text: &str) -> Vec<Word> {
    let mut found: Vec<Word> = Vec::new();
    let mut follows = false;
    for (index, line) in text.lines().enumerate() {
        let mut word = String::new();
        let mut small = false;
        for letter in line.chars().chain([' ']) {
            let ends = !letter.is_alphanumeric() || (small && letter.is_uppercase());
            if ends && !word.is_empty() {
                found.push(Word { line: index + 1, text: std::mem::take(&mut word), follows });
                follows = true;
            }
            follows &= letter.is_alphanumeric() || letter.is_whitespace() || "_-/!#*".contains(letter);
            small = letter.is_lowercase() || letter.is_numeric();
            word.extend(letter.to_lowercase().filter(|letter| letter.is_alphanumeric()));
        }
    }
    found
}

#[test]
fn words_of_code_and_prose_are_told_apart() {
    let only = |text: &str| words(text).into_iter().map(|word| (word.text, word.follows)).collect::<Vec<_>>();
    let as_they_are = |words: &[(&str, bool)]| {
        words.iter().map(|(word, follows)| (word.to_string(), *follows)).collect::<Vec<_>>()
    };
    assert_eq!(
        only("TwinThing::two_words(B7)"),
        as_they_are(&[("twin", false), ("thing", true), ("two", false), ("words", true), ("b7", false)])
    );
    assert_eq!(only("of two\n/// words"), as_they_are(&[("of", false), ("two", true), ("words", true)]));
}

/// One word for one thing: docs/vocabulary.md says which words gave way, and where they may stay.
#[test]
fn old_words_are_gone() {
    let stays: Vec<(String, String)> = vocabulary("Where an old word stays")
        .into_iter()
        .map(|row| (quoted(&row[0]).concat(), quoted(&row[1]).concat()))
        .collect();
    let old: Vec<(String, Vec<String>)> = ["Words", "Keys"]
        .into_iter()
        .flat_map(vocabulary)
        .flat_map(|row| quoted(&row[0]))
        .map(|old| (old.clone(), words(&old).into_iter().map(|word| word.text).collect()))
        .collect();
    assert!(old.len() > 35, "the page has only {} old words", old.len());
    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    for file in files() {
        let name = file.display().to_string();
        let Ok(text) = std::fs::read_to_string(root().join(&file)) else { continue };
        let all = words(&text);
        for (old, parts) in &old {
            let is_it = |at: &&[Word]| {
                at.iter().map(|word| &word.text).eq(parts) && at[1..].iter().all(|word| word.follows)
            };
            for at in all.windows(parts.len()).filter(is_it) {
                let mut excuses = stays
                    .iter()
                    .filter(|(word, path)| (word == "*" || word == old) && name.starts_with(path));
                match excuses.next() {
                    Some(excuse) => {
                        used.insert(excuse);
                    }
                    None => wrong.push(format!("{name}:{}: `{old}`", at[0].line)),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "docs/vocabulary.md says what to write instead:\n{}", wrong.join("\n"));
    for (word, path) in stays.iter().filter(|(word, _)| word != "*") {
        assert!(
            used.contains(&(word.clone(), path.clone())),
            "`{word}` does not stand in {path}: strike the row"
        );
    }
}

/// Names of public types that several modules may have, and why.
const SHARED_NAMES: &[(&str, &str)] =
    &[("Options", "what one command reads, named by its module: `sweep::Options`")];

#[test]
fn no_public_type_name_stands_for_two_things() {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in files() {
        let parts: Vec<&str> = file.iter().filter_map(|part| part.to_str()).collect();
        if !matches!(parts[..], ["crates" | "services", _, "src", ..])
            || file.extension().is_none_or(|end| end != "rs")
        {
            continue;
        }
        let text = read(&file);
        for (number, line) in text.lines().enumerate() {
            let mut words = line.split_whitespace();
            let declares = words.next() == Some("pub")
                && matches!(words.next(), Some("struct" | "enum" | "trait" | "type" | "union"));
            // A macro names what it declares elsewhere.
            if let (true, Some(name)) = (declares, words.next().filter(|name| !name.starts_with('$'))) {
                let end = name
                    .find(|letter: char| !letter.is_alphanumeric() && letter != '_')
                    .unwrap_or(name.len());
                found.entry(name[..end].to_string()).or_default().push(format!(
                    "{}:{}",
                    file.display(),
                    number + 1
                ));
            }
        }
    }
    assert!(found.len() > 400, "only {} public types were found", found.len());
    let twice = found
        .iter()
        .filter(|(name, at)| at.len() > 1 && SHARED_NAMES.iter().all(|(shared, _)| shared != name));
    let twice: Vec<String> = twice.map(|(name, at)| format!("`{name}`: {}", at.join(", "))).collect();
    assert!(twice.is_empty(), "one name for several public types:\n{}", twice.join("\n"));
    for (name, _) in SHARED_NAMES {
        assert!(found.get(*name).is_some_and(|at| at.len() > 1), "`{name}` is not shared: strike it");
    }
}
