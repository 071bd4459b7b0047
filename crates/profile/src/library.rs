//! Where profiles are found, and what is asked of them.

use crate::document::{Document, Shipped};
use crate::error::{Place, ProfileError, Source, suggestion};
use crate::{Number, Problem, System, assemble, builtin, coherent, overlay};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// What a profile describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// A card or NIC.
    Device,
    /// A machine that a card is plugged into.
    Host,
    /// Machines and the network between them.
    Testbed,
    /// Changes to numbers of other profiles.
    Overlay,
}

impl Category {
    /// Every category.
    pub const ALL: [Category; 4] = [Category::Device, Category::Host, Category::Testbed, Category::Overlay];

    /// The word for one of them, as in `device`.
    pub fn name(self) -> &'static str {
        match self {
            Category::Device => "device",
            Category::Host => "host",
            Category::Testbed => "testbed",
            Category::Overlay => "overlay",
        }
    }

    /// The directory that holds them, as in `devices`.
    pub fn directory(self) -> &'static str {
        match self {
            Category::Device => "devices",
            Category::Host => "hosts",
            Category::Testbed => "testbeds",
            Category::Overlay => "overlays",
        }
    }
}

/// A profile in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name to ask for it by.
    pub name: String,
    /// Its one-line description, or why it cannot be read.
    pub description: String,
    /// The file that it comes from.
    pub file: String,
}

/// Which system to load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SystemRequest<'a> {
    /// A device's name, or the path of a `.toml` file that describes one.
    pub device: &'a str,
    /// A testbed's name or path; the device's own where absent.
    pub testbed: Option<&'a str>,
    /// The card's mode; the device's own where absent.
    pub mode: Option<&'a str>,
    /// Names or paths of overlays, applied in order.
    pub overlays: Vec<&'a str>,
    /// Settings such as `soc.pcie_mtu=512B`, applied after the overlays, in order.
    pub settings: Vec<String>,
    /// An overlay that is applied after the settings.
    pub last: Option<&'a str>,
    /// The card beside which this device is looked at. Overlays and settings then speak of that card, and change here
    /// only what both have from one place, such as a client's numbers; patterns mean every number that they match.
    pub beside: Option<&'a str>,
}

/// What an overlay says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverlayHead {
    /// Its name.
    pub name: String,
    /// What it changes, and what it takes to be so.
    pub description: String,
    /// Who suggests it to makers of cards.
    pub suggested_by: Option<String>,
    /// The numbers that it changes, or patterns of them, as it writes them.
    pub changes: Vec<String>,
}

/// The profiles that can be asked for by name.
#[derive(Clone, Debug)]
pub struct Library {
    sources: BTreeMap<(Category, String), Arc<Source>>,
    /// Those that a user's directory holds.
    own: BTreeSet<(Category, String)>,
    /// Files from memory, by their paths.
    files: BTreeMap<PathBuf, Arc<Source>>,
}

impl Library {
    /// The profiles that ship inside the program.
    pub fn builtin() -> Library {
        let sources = builtin::FILES
            .iter()
            .map(|(category, name, file, text)| {
                (
                    (*category, name.to_string()),
                    Arc::new(Source { name: file.to_string(), text: text.to_string() }),
                )
            })
            .collect();
        Library { sources, own: BTreeSet::new(), files: BTreeMap::new() }
    }

    /// The builtin profiles, shadowed and extended by `devices/*.toml`, `hosts/*.toml`,
    /// `testbeds/*.toml` and `overlays/*.toml` below `path`. A file is asked for by its name without
    /// `.toml`.
    ///
    /// Refused where a directory or file cannot be read, and where `path` has none of those directories; a
    /// file's contents are checked on use.
    pub fn with_directory(path: &Path) -> Result<Library, ProfileError> {
        let mut library = Library::builtin();
        std::fs::read_dir(path).map_err(|error| unreadable(path, &error, None))?;
        if !Category::ALL.iter().any(|category| path.join(category.directory()).is_dir()) {
            let wanted: Vec<String> =
                Category::ALL.iter().map(|category| format!("{}/", category.directory())).collect();
            return Err(ProfileError::new(
                Problem::Structure { reason: format!("`{}` has no profiles", path.display()) },
                format!("name a directory that has one or more of {}", wanted.join(", ")),
                None,
            ));
        }
        for category in Category::ALL {
            let directory = path.join(category.directory());
            if !directory.is_dir() {
                continue;
            }
            let entries =
                std::fs::read_dir(&directory).map_err(|error| unreadable(&directory, &error, None))?;
            for entry in entries {
                let file = entry.map_err(|error| unreadable(&directory, &error, None))?.path();
                let stem = file.file_stem().and_then(|stem| stem.to_str()).map(str::to_string);
                if let (Some(stem), Some("toml")) = (stem, file.extension().and_then(|end| end.to_str())) {
                    // A named pipe that nobody asked for by its name would be waited for without end.
                    if !file.is_file() {
                        let problem = Problem::Unreadable {
                            file: file.display().to_string(),
                            reason: "it is not a regular file".to_string(),
                        };
                        return Err(ProfileError::new(
                            problem,
                            "move it out of the folder of profiles",
                            None,
                        ));
                    }
                    library.own.insert((category, stem.clone()));
                    library.sources.insert((category, stem), read(&file, None)?);
                }
            }
        }
        Ok(library)
    }

    /// Adds a profile from memory, or replaces the one of that name; it is checked on use.
    pub fn insert(&mut self, category: Category, name: &str, text: &str) {
        let source = Source { name: format!("{}/{name}.toml", category.directory()), text: text.to_string() };
        self.sources.insert((category, name.to_string()), Arc::new(source));
    }

    /// Has a file from memory in the place of what lies, or does not lie, at a path: what is about to be written can be checked first.
    pub fn insert_file(&mut self, path: &Path, text: &str) {
        let source = Source { name: path.display().to_string(), text: text.to_string() };
        self.files.insert(path.to_path_buf(), Arc::new(source));
    }

    /// The profiles of a category in the order of their names.
    pub fn names(&self, category: Category) -> Vec<Listed> {
        self.sources
            .iter()
            .filter(|((of, _), _)| *of == category)
            .map(|((_, name), source)| {
                let document = Document::parse(source.clone());
                let described = document.and_then(|document| {
                    Ok(document.require(category)?.word("description").unwrap_or_default().to_string())
                });
                let description = described.unwrap_or_else(|error| format!("cannot be loaded: {error}"));
                Listed { name: name.clone(), description, file: source.name.clone() }
            })
            .collect()
    }

    /// What an overlay says of itself, by its name or file.
    ///
    /// # Errors
    /// Where there is none, or where it is refused.
    pub fn overlay(&self, name: &str) -> Result<OverlayHead, ProfileError> {
        let document = self.open(Category::Overlay, name, None)?;
        let header = document.require(Category::Overlay)?;
        let word = |key: &str| header.word(key).map(str::to_string);
        Ok(OverlayHead {
            name: word("name").unwrap_or_default(),
            description: word("description").unwrap_or_default(),
            suggested_by: word("suggested_by"),
            changes: document.changes.iter().map(|change| change.pattern.clone()).collect(),
        })
    }

    /// The overlays that somebody suggests to makers of cards, in the order of their names.
    ///
    /// # Errors
    /// Where an overlay is refused.
    pub fn suggestions(&self) -> Result<Vec<OverlayHead>, ProfileError> {
        let overlays = self.sources.keys().filter(|(of, _)| *of == Category::Overlay);
        let heads = overlays.map(|(_, name)| self.overlay(name)).collect::<Result<Vec<_>, _>>()?;
        Ok(heads.into_iter().filter(|head| head.suggested_by.is_some()).collect())
    }

    /// The text of a profile, as its author wrote it.
    pub fn source(&self, category: Category, name: &str) -> Result<&str, ProfileError> {
        match self.sources.get(&(category, name.to_string())) {
            Some(source) => Ok(&source.text),
            None => Err(self.unknown(category, name, None)),
        }
    }

    /// Loads a device in a testbed, in a mode, with overlays and settings applied.
    ///
    /// Every refusal names the file and line, what is wrong there, what is accepted, and what to do.
    pub fn load(&self, request: &SystemRequest<'_>) -> Result<System, ProfileError> {
        let device = self.open(Category::Device, request.device, None)?;
        let header = device.require(Category::Device)?;
        let testbed = match (request.testbed, device.header(Category::Testbed), header.word("testbed")) {
            // A file that describes a device in a testbed is read once, however often it is named.
            (Some(name), Some(_), _) if name == request.device => device.clone(),
            (Some(name), _, _) => self.open(Category::Testbed, name, None)?,
            (None, Some(_), _) => device.clone(),
            (None, None, Some(name)) => {
                self.open(Category::Testbed, name, Some((&device.source, header.span_of("testbed"))))?
            }
            (None, None, None) => {
                return Err(ProfileError::new(
                    Problem::Missing { what: "`testbed`".into(), place: "`[device]`".into() },
                    "name a testbed in the request, or add `testbed = \"rack\"` to the device",
                    Some((&device.source, header.span.clone())),
                ));
            }
        };
        let mut system = assemble::assemble(self, &device, &testbed, request.mode)?;
        for name in header.names("variants") {
            let variant =
                self.open(Category::Overlay, name, Some((&device.source, header.span_of("variants"))))?;
            let description = variant.require(Category::Overlay)?.word("description").unwrap_or_default();
            system.variants.push((name.to_string(), description.to_string()));
        }
        let shared = match request.beside {
            None => None,
            Some(card) => {
                let card = self.load(&SystemRequest {
                    device: card,
                    testbed: request.testbed,
                    ..SystemRequest::default()
                })?;
                let origin = |number: &Number| (number.file.clone(), number.key.clone());
                let is_one = |(name, number): &(&String, &Arc<Number>)| {
                    card.numbers.get(*name).is_some_and(|other| origin(other) == origin(number))
                };
                Some(system.numbers.iter().filter(is_one).map(|(name, _)| name.clone()).collect())
            }
        };
        let mut overlays = Vec::new();
        for name in &request.overlays {
            let document = self.open(Category::Overlay, name, None)?;
            overlay::apply(&mut system, &document, shared.as_ref())?;
            overlays.push(document);
            system.overlays.push(name.to_string());
        }
        for setting in &request.settings {
            if overlay::set(&mut system, setting, shared.as_ref())? {
                system.overlays.push(setting.clone());
            }
        }
        if let Some(name) = request.last {
            let document = self.open(Category::Overlay, name, None)?;
            overlay::apply(&mut system, &document, shared.as_ref())?;
            overlays.push(document);
            system.overlays.push(name.to_string());
        }
        system.claim_multiples()?;
        // What the files say was checked as they were read.
        system.machines.iter().try_for_each(coherent::check).map_err(|misfit| {
            let said = overlay::said_at(&misfit.names, &request.settings, &overlays);
            misfit.refusal(said.as_ref().map(|(source, span)| (source, span.clone())))
        })?;
        Ok(system)
    }

    /// The testbed of two machines with the device, where the one that it stands in names such: a benchmark mostly runs between
    /// two machines that have the same card. Absent where the device stands in no other.
    ///
    /// ```
    /// use offpath_profile::Library;
    /// assert_eq!(Library::builtin().pair_of("connectx6")?.as_deref(), Some("rack-pair"));
    /// assert_eq!(Library::builtin().pair_of("connectx7")?, None);
    /// # Ok::<(), offpath_profile::ProfileError>(())
    /// ```
    pub fn pair_of(&self, device: &str) -> Result<Option<String>, ProfileError> {
        let testbed = self.testbed_of(&self.open(Category::Device, device, None)?)?;
        let header = testbed.as_ref().and_then(|testbed| testbed.header(Category::Testbed));
        Ok(header.and_then(|header| header.word("pair")).map(str::to_string))
    }

    /// Whether a device's file describes a testbed too: the machines that it was learnt in or found in.
    pub fn brings_testbed(&self, device: &str) -> Result<bool, ProfileError> {
        Ok(self.open(Category::Device, device, None)?.header(Category::Testbed).is_some())
    }

    /// The overlays that a device names as mechanisms which the evidence leaves open.
    pub fn variants_of(&self, device: &str) -> Result<Vec<String>, ProfileError> {
        let device = self.open(Category::Device, device, None)?;
        Ok(device.require(Category::Device)?.names("variants").to_vec())
    }

    /// Whether an overlay that is looked at on the card `first` says anything about `device`: not where it is a
    /// mechanism of that card, which this one does not name.
    pub fn concerns(&self, overlay: &str, first: &str, device: &str) -> Result<bool, ProfileError> {
        let names = |device: &str| Ok(self.variants_of(device)?.iter().any(|name| name == overlay));
        Ok(first == device || !names(first)? || names(device)?)
    }

    /// Whether every profile is the shipped one: none was added, and none stands in another's place.
    pub fn is_builtin(&self) -> bool {
        let shipped = Library::builtin().sources;
        let is_shipped = |(key, source): (_, &Arc<Source>)| {
            shipped.get(key).is_some_and(|shipped| shipped.text == source.text)
        };
        self.sources.len() == shipped.len() && self.sources.iter().all(is_shipped)
    }

    /// Whether a profile asked for by this name is a user's own file.
    pub(crate) fn is_own(&self, category: Category, name: &str) -> bool {
        name.ends_with(".toml") || self.own.contains(&(category, name.to_string()))
    }

    /// Reads and checks the profile of a name or path. `asked` is where a file names it; a path in a
    /// file is relative to that file.
    pub(crate) fn open(
        &self,
        category: Category,
        name: &str,
        asked: Option<Place<'_>>,
    ) -> Result<Document, ProfileError> {
        if name.ends_with(".toml") {
            let base = asked.as_ref().and_then(|(source, _)| Path::new(&source.name).parent());
            let path = base.map_or_else(|| PathBuf::from(name), |base| base.join(name));
            let own = self.files.get(&path).cloned().map_or_else(|| read(&path, asked), Ok)?;
            let mut document = Document::parse(own)?;
            document.require(category)?;
            document.carry_over(shipped(), true);
            return Ok(document);
        }
        let Some(source) = self.sources.get(&(category, name.to_string())) else {
            return Err(self.unknown(category, name, asked));
        };
        let mut document = Document::parse(source.clone())?;
        let header = document.require(category)?;
        if header.word("name") != Some(name) {
            let own = header.word("name").unwrap_or_default();
            return Err(ProfileError::new(
                Problem::Structure { reason: format!("the file `{name}.toml` calls itself `{own}`") },
                format!("write `name = \"{name}\"`, or rename the file to `{own}.toml`"),
                Some((&document.source, header.span_of("name"))),
            ));
        }
        document.carry_over(shipped(), self.is_own(category, name));
        Ok(document)
    }

    fn unknown(&self, category: Category, name: &str, asked: Option<Place<'_>>) -> ProfileError {
        let known = self.sources.keys().filter(|(of, _)| *of == category).map(|(_, name)| name.as_str());
        // What is known by another word is not a slip of the pen.
        let other =
            Category::ALL.into_iter().find(|other| self.sources.contains_key(&(*other, name.to_string())));
        let other = other.map_or_else(String::new, |other| {
            let article = if other == Category::Overlay { "an" } else { "a" };
            format!("`{name}` is {article} {}; ", other.name())
        });
        let own = match category {
            Category::Device => {
                "; `offpath new device my-card --base DEVICE` begins a description of one of your own"
            }
            _ => "",
        };
        let near = match crate::renamed::word(name) {
            Some(new) => format!("it is called `{new}` now"),
            None => suggestion(name, known),
        };
        ProfileError::new(
            Problem::Unknown {
                what: category.name().into(),
                name: name.into(),
                place: "in the library".into(),
            },
            format!("{other}{near}; a path that ends in `.toml` names a file{own}"),
            asked,
        )
    }
}

/// What the profiles inside the program are about; read once.
pub(crate) fn shipped() -> &'static Shipped {
    static SHIPPED: OnceLock<Shipped> = OnceLock::new();
    SHIPPED.get_or_init(|| {
        let mut shipped = Shipped::default();
        for (_, name, file, text) in builtin::FILES {
            let source = Source { name: file.to_string(), text: text.to_string() };
            let document = Document::parse(Arc::new(source));
            shipped.add(&document.unwrap_or_else(|error| panic!("the shipped profile {name}: {error:?}")));
        }
        shipped
    })
}

/// The longest text that is read as a profile, a design or a saved plan.
const MOST_TEXT: u64 = 16 << 20;

/// Refuses a named pipe, since to open one waits until somebody writes to it. A pipe that a shell has opened for the
/// program, as for `/dev/stdin` and `<(...)`, has no place among the files, and is read as it is.
///
/// Errors: those of the file, and [`std::io::ErrorKind::InvalidInput`] of a named pipe.
pub fn refuse_named_pipe(path: &Path) -> std::io::Result<()> {
    match std::fs::metadata(path)?.file_type().is_fifo() && path.canonicalize().is_ok() {
        true => Err(std::io::Error::new(
            std::io::ErrorKind::InvalidInput,
            "it is a named pipe, and whoever opens one waits until somebody writes to it; write what it gives to a file",
        )),
        false => Ok(()),
    }
}

/// Opens a file of a user for reading.
///
/// Errors: those of the file, and those of [`refuse_named_pipe`].
pub fn open_file(path: &Path) -> std::io::Result<std::fs::File> {
    refuse_named_pipe(path)?;
    std::fs::File::open(path)
}

/// Reads a text of a user: of at most 16 MiB, since a device file need not end.
///
/// Errors: those of [`open_file`], no UTF-8, and [`std::io::ErrorKind::FileTooLarge`].
pub fn read_text(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let read = open_file(path)?.take(MOST_TEXT + 1).read_to_string(&mut text)? as u64;
    match read > MOST_TEXT {
        true => Err(std::io::Error::new(
            std::io::ErrorKind::FileTooLarge,
            "it is longer than 16 MiB, which no profile, design or plan is",
        )),
        false => Ok(text),
    }
}

fn read(path: &Path, asked: Option<Place<'_>>) -> Result<Arc<Source>, ProfileError> {
    let text = read_text(path).map_err(|error| unreadable(path, &error, asked))?;
    Ok(Arc::new(Source { name: path.display().to_string(), text }))
}

fn unreadable(path: &Path, error: &std::io::Error, asked: Option<Place<'_>>) -> ProfileError {
    ProfileError::new(
        Problem::Unreadable { file: path.display().to_string(), reason: error.to_string() },
        "check the path, its permissions, and that the file is UTF-8 text",
        asked,
    )
}
