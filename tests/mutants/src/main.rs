//! Breaks crates in many small ways and says which breaks no test notices.
//!
//! All mutants of all crates asked for are compiled into one build of a copy of the workspace, and an
//! environment variable chooses the one that is on. README.md says how to read the result.

mod build;
mod run;
mod sites;

use build::{Crate, Draw, Scratch};
use run::{Caught, Runner};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

const HELP: &str = "\
Usage: offpath-mutants [OPTIONS] CRATE...

CRATE is a folder of crates/ or services/, such as `capacity`.

  --sample N        mutants of each crate (default 25)
  --seed N          which of them are drawn (default 1)
  --at-least N      percent of each crate that has to be caught (default 90)
  --at FILE:LINE    every mutant at this line, or FILE:FIRST-LAST, instead of a sample; may be repeated
  --without CRATE   a crate above, whose tests are not asked about survivors; may be repeated
  --own             ask no crate above
  --target DIR      where to build (default target/mutants/target)
  --list            name the mutants and end

Exit code 0: enough was caught. 1: less was. 2: the question or the build was wrong.
";

struct Asked {
    crates: Vec<String>,
    sample: usize,
    seed: u64,
    at_least: f64,
    at: Vec<(PathBuf, usize, usize)>,
    without: Vec<String>,
    own: bool,
    target: Option<PathBuf>,
    list: bool,
}

fn place(text: &str) -> Result<(PathBuf, usize, usize), String> {
    let wrong =
        || format!("--at {text}: write FILE:LINE or FILE:FIRST-LAST, FILE from the repository's root");
    let (file, lines) = text.rsplit_once(':').ok_or_else(wrong)?;
    let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
    Ok((file.into(), first.parse().map_err(|_| wrong())?, last.parse().map_err(|_| wrong())?))
}

fn asked() -> Result<Asked, String> {
    let mut asked = Asked {
        crates: Vec::new(),
        sample: 25,
        seed: 1,
        at_least: 90.0,
        at: Vec::new(),
        without: Vec::new(),
        own: false,
        target: None,
        list: false,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value; --help lists the options"));
        let number = |text: String| text.parse().map_err(|_| format!("`{text}` is not a whole number"));
        match word.as_str() {
            "--sample" => asked.sample = number(value()?)? as usize,
            "--seed" => asked.seed = number(value()?)?,
            "--at-least" => asked.at_least = number(value()?)? as f64,
            "--at" => asked.at.push(place(&value()?)?),
            "--without" => asked.without.push(value()?),
            "--own" => asked.own = true,
            "--target" => asked.target = Some(value()?.into()),
            "--list" => asked.list = true,
            "--help" | "-h" => {
                print!("{HELP}");
                std::process::exit(0);
            }
            other if other.starts_with('-') => return Err(format!("unknown option `{other}`\n\n{HELP}")),
            name => asked.crates.push(name.to_string()),
        }
    }
    if asked.crates.is_empty() {
        return Err(format!("name the crates to break\n\n{HELP}"));
    }
    Ok(asked)
}

fn main() -> ExitCode {
    match asked().and_then(|asked| measure(&asked)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn measure(asked: &Asked) -> Result<bool, String> {
    let began = Instant::now();
    let scratch = Scratch::new(asked.target.clone())?;
    let mut crates: Vec<Crate> = Vec::new();
    for name in &asked.crates {
        let draw = match asked.at.is_empty() {
            true => Draw::Sample { seed: asked.seed, count: asked.sample },
            false => Draw::At(asked.at.clone()),
        };
        crates.push(scratch.read(name, draw)?);
    }
    scratch.build(&mut crates)?;
    if asked.list {
        for mutant in crates.iter().flat_map(Crate::mutants) {
            println!("{:>4} {}", mutant.number, mutant);
        }
        return Ok(true);
    }
    let mut runner = Runner::new(&scratch);
    let mut enough = true;
    let mut table = Vec::new();
    for one in &crates {
        let mut asked_of = vec![one.name.clone()];
        if !asked.own {
            asked_of
                .extend(scratch.above(&one.name)?.into_iter().filter(|name| !asked.without.contains(name)));
        }
        let mut left = one.mutants();
        let (mut caught, mut hung) = (0, 0);
        let all = left.len();
        let mut by: BTreeMap<String, usize> = BTreeMap::new();
        for name in asked_of {
            if left.is_empty() {
                break;
            }
            runner.prepare(&name)?;
            let mut survived = Vec::new();
            for mutant in left {
                match runner.ask(&name, mutant.number)? {
                    Some(how) => {
                        caught += 1;
                        hung += usize::from(how == Caught::Hung);
                        *by.entry(name.clone()).or_default() += 1;
                        println!("caught    {mutant} [{how} {name}]");
                    }
                    None => survived.push(mutant),
                }
            }
            left = survived;
        }
        for mutant in &left {
            let reached = if runner.reached(mutant.number) { "" } else { " [no test comes here]" };
            println!("survived  {mutant}{reached}");
        }
        let percent = if all == 0 { 100.0 } else { 100.0 * caught as f64 / all as f64 };
        enough &= percent >= asked.at_least;
        let by: Vec<String> = by.iter().map(|(name, count)| format!("{count} by {name}")).collect();
        table.push(format!(
            "{:<12} {caught:>3} of {all:>3} caught ({percent:.0}%), {hung} by hanging; {}",
            one.name,
            by.join(", ")
        ));
    }
    println!("\nseed {}, {} s", asked.seed, began.elapsed().as_secs());
    for line in table {
        println!("{line}");
    }
    Ok(enough)
}
