//! What `offpath run` answers: what a system's users saw in a backend, and how busy the stations of the twin were.
//!
//! What is run, and where, `offpath::run` says: it has backends that this crate does without.

use crate::SCHEMA_VERSION;
use offpath_apps::system::{BackendReport, Block, Cell, RunPage, Said};
use offpath_terminal::output::{Screen, TableCell, place, short};
use serde::Serialize;

/// From which share of its time on a station binds: beyond it a queue grows faster than it empties.
const BINDS_FROM: f64 = 0.95;
/// How many stations are shown.
const STATIONS: usize = 5;

/// What a system's users saw in a backend.
#[derive(Clone, Debug, Serialize)]
pub struct RunAnswer<R> {
    /// Version of this schema; it grows when a key changes its meaning or goes away. New keys may come without that.
    pub schema_version: u32,
    /// The system.
    pub system: &'static str,
    /// The backend that it ran in.
    #[serde(flatten)]
    pub backend: BackendReport,
    /// What the system itself reports.
    #[serde(flatten)]
    pub report: R,
    /// The busiest station where it is busy for 95% of the time or more; null where none is, or the backend does not tell.
    pub binding_station: Option<String>,
    /// The twin's busiest stations, at most 5, the busiest first; packet pools, which count requests, are left out.
    pub busiest_stations: Vec<BusyAnswer>,
    /// What the system says to people.
    #[serde(skip)]
    pub page: RunPage,
    /// Whether the system did what it promises.
    #[serde(skip)]
    pub holds: bool,
}

/// The busiest machine of its role at a station: the mean over machines would hide a full one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BusyAnswer {
    /// Its name.
    pub station: String,
    /// The role whose machines have it.
    pub role: String,
    /// The busiest of those machines, from 1.
    pub machine: u32,
    /// How many there are.
    pub machines: u64,
    /// The share of its servers' time that it was busy on that machine, from 0 to 1: while it was measured for the store,
    /// over the whole run for the log.
    pub utilization: f64,
}

impl BusyAnswer {
    /// The station and its machine, in words.
    fn place(&self) -> String {
        place(&self.station, &self.role, self.machine, self.machines)
    }

    fn row(&self) -> Vec<TableCell> {
        vec![TableCell::Name(self.place()), TableCell::Number(percent(self.utilization))]
    }
}

impl<R> RunAnswer<R> {
    /// The answer of a run: what its system said, and the stations of the twin, the busiest first.
    pub fn of(
        system: &'static str,
        backend: BackendReport,
        said: Said<R>,
        mut busy: Vec<BusyAnswer>,
    ) -> RunAnswer<R> {
        let binding = busy.first().filter(|one| one.utilization >= BINDS_FROM);
        let binding_station = binding.map(|one| one.station.clone());
        busy.retain(|one| one.utilization > 0.0);
        busy.truncate(STATIONS);
        let Said { report, page, holds } = said;
        RunAnswer {
            schema_version: SCHEMA_VERSION,
            system,
            backend,
            report,
            binding_station,
            busiest_stations: busy,
            page,
            holds,
        }
    }

    /// The answer as text: the system's page, with the stations of the twin where it wants them.
    pub fn text(&self, screen: &Screen) -> String {
        let title = format!("{} on {}: {}\n", self.system, self.backend.line, self.page.title);
        let block = |block: &Block| match block {
            Block::Text(text) => text.clone(),
            Block::Heading(text) => screen.heading(text),
            Block::Table(table) => {
                let rows = table.rows.iter().map(|row| row.iter().map(entry).collect()).collect();
                screen.table(&table.header, rows)
            }
            Block::Stations => self.stations(screen),
        };
        std::iter::once(title).chain(self.page.blocks.iter().map(block)).collect()
    }

    /// What binds in a line, and the busiest stations below it.
    fn stations(&self, screen: &Screen) -> String {
        let Some(first) = self.busiest_stations.first() else { return String::new() };
        let heading = match self.binding_station {
            Some(_) => format!("{} binds", first.place()),
            None => {
                format!("Nothing binds; the busiest is {}, at {}", first.place(), percent(first.utilization))
            }
        };
        let rows = self.busiest_stations.iter().map(BusyAnswer::row).collect();
        screen.heading(&heading) + &screen.table(&["station", "busy"], rows)
    }
}

/// A cell of a system's table as a screen has it.
fn entry(cell: &Cell) -> TableCell {
    match cell.clone() {
        Cell::Name(text) => TableCell::Name(text),
        Cell::Strong(text) => TableCell::Strong(text),
        Cell::Number(text) => TableCell::Number(text),
    }
}

fn percent(share: f64) -> String {
    format!("{}%", short(share * 100.0))
}
