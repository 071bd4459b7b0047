//! `offpath calibrate`: a card from its own logs.

use super::{Context, Shown, answer};
use crate::failure::Failure;
use crate::output::{OutputFile, tell};
use crate::progress::Progress;
use clap::Args;
use offpath::answers::calibrate::{
    CalibrateAnswer, CalibrateRequest, CardFile, calibrate_telling, card_files,
};
use offpath::learn::HoldOut;
use offpath_terminal::options::as_shell_words;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  offpath calibrate logs/*.log --base bluefield3 -o mycard.toml
        fits what the logs tell, predicts every second size, writes the card
  offpath plan designs/kv-ycsb-c.toml --device mycard.toml
        plans on it; a design that uses the card's processor needs a base that has one, which connectx7 has not
  offpath calibrate logs/*.log --base connectx7 --hold-out sizes --hold-out verb=write --hold-out qps=2,4
        how well READs of some sizes predict the rest, beside a roofline
  offpath calibrate logs/*.log --base bluefield2 --path client-soc --fit soc.read_latency";

/// Learn a card's numbers from its own benchmark logs, and write it as a profile
///
/// Fits the numbers that the logs tell apart, each with its interval; says which they do not tell, and which run would.
/// Prints the error on points that were held out beside that of a roofline and of a straight line. See docs/calibrate.md.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// Logs of perftest or pcie-bench; `-` is standard input
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,
    /// The card that is begun from: a device's name, or a .toml file that describes one
    #[arg(long, value_name = "DEVICE")]
    base: String,
    /// From the client's endpoint to the server's, as `offpath path` names them
    #[arg(long, default_value = "client-host")]
    path: String,
    /// Write the card to this file; hosts with fitted numbers are written beside it
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Keep points for prediction: `sizes` (every second one), `verb=write`, `qps=2,4`; may be given several times
    /// [default: sizes]
    #[arg(long, value_name = "RULE")]
    hold_out: Vec<HoldOut>,
    /// Fit this number, and no other than those named so [default: those that the points tell]
    #[arg(long, value_name = "NAME")]
    fit: Vec<String>,
    /// Leave this number as the base has it
    #[arg(long, value_name = "NAME", conflicts_with = "fit")]
    pin: Vec<String>,
}

/// Runs the command.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    let name = match &options.output {
        Some(output) => card_name(output)?,
        None => "learnt".to_string(),
    };
    let request = CalibrateRequest {
        logs: options.logs.clone(),
        base: options.base.clone(),
        name,
        path: options.path.clone(),
        hold_out: options.hold_out.clone(),
        fit: options.fit.clone(),
        pin: options.pin.clone(),
        system: context.system.clone(),
    };
    if let Some(output) = &options.output {
        // What the fit takes minutes for has to have a place.
        for name in card_files(&request)? {
            OutputFile::absent(&output.with_file_name(name))?;
        }
        OutputFile::create(output)?;
    }
    let shown = Shown(Progress::phased("fitting the card to its logs"));
    let found = calibrate_telling(&request, &shown);
    drop(shown);
    let found = found?;
    let written = options.output.as_ref().map_or(Ok(()), |output| write_card(output, &found.card));
    // What was learnt is said, also where its files found no place.
    context.screen.emit(&answer(&found, context, CalibrateAnswer::text)?)?;
    written?;
    if let Some(output) = &options.output {
        tell(&format!("next: offpath{}", as_shell_words(&next(output, &options.path))));
    }
    // A script that plans with what was written sees it, too.
    Ok(ExitCode::from(u8::from(found.worse_than_roofline)))
}

/// What the card that was written answers, whichever it is: to plan a design takes the processors that the design names.
fn next(output: &Path, path: &str) -> Vec<String> {
    let card = output.display().to_string();
    let words = match path.parse::<offpath::route::Path>() {
        Ok(own) if own.engine.is_none() => vec!["path", &card, "--path", path, "--as", "ib_read_bw"],
        _ => vec!["device", "show", &card],
    };
    words.into_iter().map(str::to_string).collect()
}

/// Writes all files of a card, or none.
fn write_card(output: &Path, card: &[CardFile]) -> Result<(), Failure> {
    let folder = output.parent().unwrap_or(Path::new(""));
    let files: Vec<PathBuf> = card.iter().map(|file| folder.join(&file.name)).collect();
    files.iter().try_for_each(|file| OutputFile::absent(file))?;
    for (place, (path, file)) in files.iter().zip(card).enumerate() {
        let written = OutputFile::create_new(path).and_then(|own| own.write(file.text.as_bytes()));
        if let Err(failure) = written {
            // What is where this one belongs is another run's.
            for path in &files[..place] {
                let _ = std::fs::remove_file(path);
            }
            return Err(failure);
        }
    }
    files.iter().for_each(|path| tell(&format!("wrote {}", path.display())));
    Ok(())
}

/// The card's name, which is its file's.
fn card_name(output: &Path) -> Result<String, Failure> {
    let stem = output.file_stem().and_then(|stem| stem.to_str());
    match (stem, output.extension().and_then(|end| end.to_str())) {
        (Some(stem), Some("toml")) => Ok(stem.to_string()),
        _ => Err(Failure::input(
            format!("`--output {}` is not a file of a device", output.display()),
            "name one that ends in `.toml`, as in `mycard.toml`",
        )),
    }
}
