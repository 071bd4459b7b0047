//! Regions: sparse bytes with their recent past, so that every line is seen as of its own time.

use super::{Core, TwinFabric};
use offpath_fabric::runtime::{KeptHandle, KeptRegion, RegionOwner, RegionTable, Registration};
use offpath_fabric::{Access, RegionError, RemoteAddress, RoleMemory, Status};
use offpath_quantity::Time;
use std::cell::{RefCell, RefMut};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

const PAGE: usize = 4096;
const PAGES: usize = 512;
/// What becomes visible at one moment.
const LINE: u64 = 64;

type Page = Box<[u8]>;
type Table = Box<[Option<Page>]>;

/// Bytes that take no space before they are written. The last page and the last table are no longer than the
/// bytes: a run under load has many thousands of regions of a few bytes.
struct Sparse {
    length: usize,
    directory: Vec<Option<Table>>,
}

impl Sparse {
    fn new(length: u64) -> Sparse {
        let mut directory = Vec::new();
        directory.resize_with(length.div_ceil((PAGE * PAGES) as u64) as usize, || None);
        Sparse { length: length as usize, directory }
    }

    /// The page that the byte `at` lies on, made where there is none.
    fn page(&mut self, at: usize) -> &mut Page {
        let first = at / (PAGE * PAGES) * (PAGE * PAGES);
        let pages = (self.length - first).div_ceil(PAGE).min(PAGES);
        let bytes = (self.length - at / PAGE * PAGE).min(PAGE);
        let table = self.directory[at / (PAGE * PAGES)].get_or_insert_with(|| {
            let mut table = Vec::new();
            table.resize_with(pages, || None);
            table.into_boxed_slice()
        });
        table[at / PAGE % PAGES].get_or_insert_with(|| vec![0; bytes].into_boxed_slice())
    }

    fn read(&self, offset: u64, into: &mut [u8]) {
        let mut done = 0;
        while done < into.len() {
            let at = offset as usize + done;
            let within = at % PAGE;
            let length = (PAGE - within).min(into.len() - done);
            let part = &mut into[done..done + length];
            let table = self.directory[at / (PAGE * PAGES)].as_ref();
            match table.and_then(|table| table[at / PAGE % PAGES].as_ref()) {
                Some(page) => part.copy_from_slice(&page[within..within + length]),
                None => part.fill(0),
            }
            done += length;
        }
    }

    fn write(&mut self, offset: u64, from: &[u8]) {
        let mut done = 0;
        while done < from.len() {
            let at = offset as usize + done;
            let within = at % PAGE;
            let length = (PAGE - within).min(from.len() - done);
            let page = self.page(at);
            page[within..within + length].copy_from_slice(&from[done..done + length]);
            done += length;
        }
    }

    /// Writes bytes and so many zeros after them: what was never written is 0 already.
    fn write_part(&mut self, offset: u64, (bytes, zeros): (&[u8], u64)) {
        self.write(offset, bytes);
        let mut at = offset + bytes.len() as u64;
        let end = at + zeros;
        let upto = |at: u64, size: usize| (at / size as u64 * size as u64 + size as u64).min(end);
        while at < end {
            let index = at as usize;
            let Some(table) = self.directory[index / (PAGE * PAGES)].as_mut() else {
                at = upto(at, PAGE * PAGES);
                continue;
            };
            let next = upto(at, PAGE);
            if let Some(page) = table[index / PAGE % PAGES].as_mut() {
                page[index % PAGE..index % PAGE + (next - at) as usize].fill(0);
            }
            at = next;
        }
    }

    /// How many bytes from `offset` on, of `length`, may be other than 0.
    fn extent(&self, offset: u64, length: u64) -> u64 {
        let mut end = offset + length;
        while end > offset {
            let last = end as usize - 1;
            let Some(table) = self.directory[last / (PAGE * PAGES)].as_ref() else {
                end = (last / (PAGE * PAGES) * (PAGE * PAGES)) as u64;
                continue;
            };
            if table[last / PAGE % PAGES].is_some() {
                return end - offset;
            }
            end = (last / PAGE * PAGE) as u64;
        }
        0
    }
}

/// Bytes on their way. Large transfers of memory that nobody wrote are all zeros, which are only counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Payload {
    length: u64,
    /// The first of them; those beyond are 0.
    head: Box<[u8]>,
}

impl From<Box<[u8]>> for Payload {
    fn from(head: Box<[u8]>) -> Payload {
        Payload { length: head.len() as u64, head }
    }
}

impl Payload {
    /// Bytes `from` to `to`: those that are held, and how many zeros follow.
    fn part(&self, from: u64, to: u64) -> (&[u8], u64) {
        let held = self.head.len() as u64;
        (&self.head[from.min(held) as usize..to.min(held) as usize], to.max(held) - from.max(held))
    }
}

/// A write whose lines become visible one after the other.
struct Timed {
    start: u64,
    end: u64,
    offset: u64,
    payload: Payload,
    /// Lines that the base holds already.
    folded: u64,
    /// When the first line that it does not hold comes.
    next: u64,
}

/// When line `index` of `count` comes, from `start` to `end`.
fn line_time(start: u64, end: u64, index: u64, count: u64) -> u64 {
    if count <= 1 {
        return end;
    }
    // Nearly all spans are short enough for the machine's own division.
    start
        + match (end - start).checked_mul(index) {
            Some(product) => product / (count - 1),
            None => (u128::from(end - start) * u128::from(index) / u128::from(count - 1)) as u64,
        }
}

fn lines_of(offset: u64, length: u64) -> (u64, u64) {
    (offset / LINE, (offset + length - 1) / LINE + 1 - offset / LINE)
}

impl Timed {
    fn new(start: u64, end: u64, offset: u64, payload: Payload) -> Timed {
        let mut write = Timed { start, end, offset, payload, folded: 0, next: 0 };
        write.fold_to(0);
        write
    }

    /// Says that the base holds so many lines.
    fn fold_to(&mut self, lines: u64) {
        self.folded = lines;
        self.next = line_time(self.start, self.end, lines, self.lines().1);
    }

    fn lines(&self) -> (u64, u64) {
        lines_of(self.offset, self.payload.length)
    }

    /// How many lines, from the first on, are visible at `at`.
    fn visible(&self, at: u64) -> u64 {
        let (_, count) = self.lines();
        if at >= self.end {
            return count;
        }
        if at < self.start || count == 1 {
            return 0;
        }
        let (past, span) = (at - self.start + 1, self.end - self.start);
        let seen = match past.checked_mul(count - 1) {
            Some(product) => product.div_ceil(span),
            None => (u128::from(past) * u128::from(count - 1)).div_ceil(u128::from(span)) as u64,
        };
        seen.min(count)
    }

    /// The bytes of lines `from` to `to`, counted from the write's first: where and what.
    fn part(&self, from: u64, to: u64) -> (u64, (&[u8], u64)) {
        let (first, _) = self.lines();
        let start = ((first + from) * LINE).max(self.offset);
        let end = ((first + to) * LINE).min(self.offset + self.payload.length);
        (start, self.payload.part(start - self.offset, end - self.offset))
    }
}

/// Lines of one of the recent writes, and the bytes that they hold.
struct Part {
    from: u64,
    to: u64,
    is_zero: bool,
    index: usize,
    lines: std::ops::Range<u64>,
}

/// The content of a region.
struct Content {
    base: Sparse,
    /// Writes that the base does not hold whole, in the order in which they were made known.
    recent: Vec<Timed>,
    /// When the first line of `recent` that the base does not hold comes.
    next: u64,
    /// When each reader was made known, and whether it still reads; the first one does.
    readers: VecDeque<(u64, bool)>,
    /// The number of the first of `readers`.
    first_reader: u64,
}

impl Content {
    /// Moves into the base what every reader must see.
    fn fold(&mut self, now: u64) {
        if self.recent.is_empty() {
            return;
        }
        let horizon = self.readers.front().map_or(now, |(since, _)| now.min(*since));
        if horizon < self.next {
            return;
        }
        let mut ready = self.recent.iter().enumerate().filter(|(_, write)| write.next <= horizon);
        let (first, second) = (ready.next(), ready.next());
        match (first, second) {
            (None, _) => return,
            (Some((index, _)), None) => {
                let write = &mut self.recent[index];
                let upto = write.visible(horizon);
                let (offset, part) = write.part(write.folded, upto);
                self.base.write_part(offset, part);
                write.fold_to(upto);
            }
            _ => {
                let ready = self.recent.iter().enumerate().filter(|(_, write)| write.next <= horizon);
                let mut parts: Vec<Part> = ready
                    .map(|(index, write)| {
                        let lines = write.folded..write.visible(horizon);
                        let (from, (bytes, zeros)) = write.part(lines.start, lines.end);
                        let is_zero = bytes.is_empty();
                        Part { from, to: from + bytes.len() as u64 + zeros, is_zero, index, lines }
                    })
                    .collect();
                parts.sort_unstable_by_key(|part| part.from);
                let is_apart = parts.windows(2).all(|two| two[0].to <= two[1].from);
                if is_apart || parts.iter().all(|part| part.is_zero) {
                    // Nothing is written twice, or the same, so that the order of the lines decides nothing.
                    for Part { index, lines, .. } in &parts {
                        let (offset, part) = self.recent[*index].part(lines.start, lines.end);
                        self.base.write_part(offset, part);
                    }
                } else {
                    let mut order = Vec::new();
                    for Part { index, lines, .. } in &parts {
                        let (write, count) = (&self.recent[*index], self.recent[*index].lines().1);
                        let times = lines.clone().map(|line| line_time(write.start, write.end, line, count));
                        order.extend(times.zip(lines.clone()).map(|(at, line)| (at, *index, line)));
                    }
                    order.sort_unstable();
                    for (_, index, line) in order {
                        let (offset, part) = self.recent[index].part(line, line + 1);
                        self.base.write_part(offset, part);
                    }
                }
                for Part { index, lines, .. } in parts {
                    self.recent[index].fold_to(lines.end);
                }
            }
        }
        self.recent.retain(|write| write.folded < write.lines().1);
        self.next = self.recent.iter().map(|write| write.next).min().unwrap_or(u64::MAX);
    }

    /// Lines of recent writes in bytes `from` to `to` that are visible to who looks at a line at
    /// `when(line)`, at `last` at the latest, in the order in which they became so: which write, which of
    /// its lines.
    fn order(&self, from: u64, to: u64, last: u64, when: impl Fn(u64) -> u64) -> Vec<(usize, u64)> {
        let mut order = Vec::new();
        for (index, write) in self.recent.iter().enumerate().filter(|(_, write)| write.next <= last) {
            let (first, count) = write.lines();
            let low = (from / LINE).saturating_sub(first).max(write.folded);
            let high = to.div_ceil(LINE).saturating_sub(first).min(count);
            for line in low..high {
                let at = line_time(write.start, write.end, line, count);
                if at <= when(first + line) {
                    order.push((at, index, line));
                }
            }
        }
        order.sort_unstable();
        order.into_iter().map(|(_, index, line)| (index, line)).collect()
    }

    /// Reads with each line as of its own time, from `start` at the first to `end` at the last.
    fn read(&mut self, offset: u64, into: &mut [u8], start: u64, end: u64, now: u64) {
        self.fold(now);
        let length = into.len() as u64;
        self.read_first(offset, into, length, start, end);
    }

    /// The same of `length` bytes, without those that nobody wrote at their end.
    fn take(&mut self, offset: u64, length: u64, start: u64, end: u64, now: u64) -> Payload {
        let mut head = Vec::new();
        self.take_into(&mut head, offset, length, start, end, now);
        Payload { length, head: head.into() }
    }

    /// The same into `head`, whose own bytes are lost.
    fn take_into(&mut self, head: &mut Vec<u8>, offset: u64, length: u64, start: u64, end: u64, now: u64) {
        self.fold(now);
        let written = self.recent.iter().map(|write| write.offset + write.payload.head.len() as u64);
        let recent = written.max().unwrap_or(0).saturating_sub(offset).min(length);
        let held = self.base.extent(offset, length).max(recent) as usize;
        head.clear();
        head.reserve_exact(held);
        head.resize(held, 0);
        self.read_first(offset, head, length, start, end);
    }

    /// The first of `length` bytes that are read from `start` to `end`.
    fn read_first(&self, offset: u64, into: &mut [u8], length: u64, start: u64, end: u64) {
        self.base.read(offset, into);
        if self.recent.is_empty() || into.is_empty() {
            return;
        }
        let (first, count) = lines_of(offset, length);
        let upto = offset + into.len() as u64;
        for (index, line) in self.order(offset, upto, end, |line| line_time(start, end, line - first, count))
        {
            let (at, (bytes, zeros)) = self.recent[index].part(line, line + 1);
            let held = at + bytes.len() as u64;
            let (low, high) = (at.max(offset), held.min(upto));
            if low < high {
                into[(low - offset) as usize..(high - offset) as usize]
                    .copy_from_slice(&bytes[(low - at) as usize..(high - at) as usize]);
            }
            let (low, high) = (held.max(offset), (held + zeros).min(upto));
            if low < high {
                into[(low - offset) as usize..(high - offset) as usize].fill(0);
            }
        }
    }

    fn write(&mut self, offset: u64, payload: Payload, start: u64, end: u64, now: u64) {
        self.fold(now);
        if payload.length == 0 {
            return;
        }
        self.add(Timed::new(start, end, offset, payload));
    }

    fn add(&mut self, write: Timed) {
        self.next = self.next.min(write.next);
        self.recent.push(write);
    }

    /// A write by a processor, whole and now.
    fn write_now(&mut self, offset: u64, from: &[u8], now: u64) {
        self.fold(now);
        if self.recent.is_empty() && self.readers.is_empty() {
            self.base.write(offset, from);
        } else if !from.is_empty() {
            self.add(Timed::new(now, now, offset, Payload::from(Box::from(from))));
        }
    }

    /// The same of so many bytes, of which those beyond `head` are 0.
    fn put_now(&mut self, offset: u64, head: &[u8], length: u64, now: u64) {
        self.fold(now);
        if self.recent.is_empty() && self.readers.is_empty() {
            self.base.write_part(offset, (head, length - head.len() as u64));
        } else if length > 0 {
            self.add(Timed::new(now, now, offset, Payload { length, head: Box::from(head) }));
        }
    }
}

/// By endpoint and machine instance.
pub(super) type Regions = RegionTable<(usize, u32), Held>;

/// A region's content, with the run by whose clock it is seen.
pub(super) struct Held {
    core: Weak<Core>,
    content: RefCell<Content>,
}

/// Registered memory of a role on the twin.
#[derive(Clone, Debug)]
pub struct TwinRegion(Rc<KeptRegion<(usize, u32), Held>>);

pub(super) fn register(
    core: &Rc<Core>,
    role: usize,
    memory: &str,
    length: u64,
    access: Access,
) -> Result<TwinRegion, RegionError> {
    if access.includes(Access::ON_DEMAND) {
        return Err(TwinFabric::unsupported("on-demand paging", "register without `ON_DEMAND`").into());
    }
    let state = &core.roles[role];
    let own = &core.places[state.place];
    let memories = [RoleMemory { name: own.name.clone(), capacity: own.capacity }];
    let place = (state.place, state.instance);
    let owner = RegionOwner { role, name: &state.name, memories: &memories, place };
    let held = |_| {
        let content = Content {
            base: Sparse::new(length),
            recent: Vec::new(),
            next: u64::MAX,
            readers: VecDeque::new(),
            first_reader: 0,
        };
        Ok(Held { core: Rc::downgrade(core), content: RefCell::new(content) })
    };
    core.regions.register(owner, (memory, length), access, held).map(TwinRegion)
}

/// The region that a peer's request names, where its key, range and right are good at `role`.
pub(super) fn resolve(
    core: &Core,
    role: usize,
    at: &RemoteAddress,
    length: u64,
    right: Access,
) -> Result<(TwinRegion, u64), Status> {
    let found = core.regions.resolve(Some(role), at, length, right);
    found.map(|(region, offset)| (TwinRegion(region), offset))
}

impl TwinRegion {
    fn now(&self) -> u64 {
        self.0.content.core.upgrade().map_or(0, |core| core.now().ps())
    }

    fn content(&self) -> RefMut<'_, Content> {
        self.0.content.content.borrow_mut()
    }

    /// From now on keeps what a reader may have to see; gives the reader's number.
    pub(super) fn begin_reading(&self) -> u64 {
        let now = self.now();
        let mut content = self.content();
        content.readers.push_back((now, true));
        content.first_reader + content.readers.len() as u64 - 1
    }

    /// Ends a reader.
    pub(super) fn end_reading(&self, reader: u64) {
        let mut content = self.content();
        let index = reader.wrapping_sub(content.first_reader) as usize;
        if let Some(entry) = content.readers.get_mut(index) {
            entry.1 = false;
        }
        while content.readers.front().is_some_and(|(_, reads)| !reads) {
            content.readers.pop_front();
            content.first_reader += 1;
        }
    }

    /// Reads a checked range with each line as of its own time between `start` and `end`.
    pub(super) fn take(&self, offset: u64, length: u64, start: Time, end: Time) -> Payload {
        let now = self.now();
        self.content().take(offset, length, start.ps(), end.ps(), now)
    }

    /// The same into `head`, whose own bytes are lost; bytes beyond it are 0.
    pub(super) fn take_into(&self, head: &mut Vec<u8>, offset: u64, length: u64, start: Time, end: Time) {
        let now = self.now();
        self.content().take_into(head, offset, length, start.ps(), end.ps(), now);
    }

    /// Writes a checked range whose lines become visible between `start` and `end`.
    pub(super) fn write_timed(&self, offset: u64, payload: Payload, start: Time, end: Time) {
        let now = self.now();
        self.content().write(offset, payload, start.ps(), end.ps(), now);
    }

    /// Writes a range now, where the region is still there for it.
    pub(super) fn put(&self, offset: u64, payload: &Payload) -> Result<(), RegionError> {
        self.put_bytes(offset, &payload.head, payload.length)
    }

    /// The same of so many bytes, of which those beyond `head` are 0.
    pub(super) fn put_bytes(&self, offset: u64, head: &[u8], length: u64) -> Result<(), RegionError> {
        self.0.check(offset, length)?;
        let now = self.now();
        self.content().put_now(offset, head, length, now);
        Ok(())
    }
}

impl KeptHandle for TwinRegion {
    fn registration(&self) -> &Registration {
        &self.0
    }

    fn end(&self) -> Result<(), RegionError> {
        self.0.deregister()
    }

    fn copy_out(&self, offset: u64, into: &mut [u8]) {
        let now = self.now();
        self.content().read(offset, into, now, now, now);
    }

    fn copy_in(&self, offset: u64, from: &[u8]) {
        let now = self.now();
        self.content().write_now(offset, from, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Pass(u64),
        Store { offset: u64, length: u64 },
        Write { offset: u64, length: u64, lead: u64, span: u64 },
        Read { offset: u64, length: u64, span: u64 },
    }

    const LENGTH: u64 = 1000;

    fn step() -> impl Strategy<Value = Step> {
        let range = (0..LENGTH, 1..400u64).prop_map(|(offset, length)| (offset, length.min(LENGTH - offset)));
        prop_oneof![
            (0..60u64).prop_map(Step::Pass),
            range.clone().prop_map(|(offset, length)| Step::Store { offset, length }),
            (range.clone(), 0..50u64, 0..100u64).prop_map(|((offset, length), lead, span)| Step::Write {
                offset,
                length,
                lead,
                span
            }),
            (range, 0..100u64).prop_map(|((offset, length), span)| Step::Read { offset, length, span }),
        ]
    }

    /// A plan under load has hundreds of thousands of regions of a few bytes.
    #[test]
    fn a_small_region_takes_its_own_bytes_and_no_page() {
        let mut small = Sparse::new(24);
        small.write(8, &[7; 8]);
        assert_eq!(
            (small.page(8).len(), small.directory[0].as_ref().map(|table| table.len())),
            (24, Some(1))
        );
        let mut large = Sparse::new((PAGE * PAGES + PAGE + 1) as u64);
        assert_eq!((large.page(0).len(), large.page(PAGE * PAGES + PAGE).len()), (PAGE, 1));
    }

    /// Where nobody wrote there is nothing to be made 0, and what lies behind it is.
    #[test]
    fn zeros_reach_over_what_nobody_wrote() {
        let table = (PAGE * PAGES) as u64;
        let mut sparse = Sparse::new(3 * table);
        sparse.write(2 * table, &[7; 2 * PAGE]);
        sparse.write_part(5, (&[1, 2], 2 * table + 100));
        let mut seen = [1; 4];
        sparse.read(4, &mut seen);
        assert_eq!(seen, [0, 1, 2, 0]);
        sparse.read(2 * table + 105, &mut seen);
        assert_eq!(seen, [0, 0, 7, 7]);
        assert!(sparse.directory[1].is_none());
    }

    proptest! {
        /// A payload is what reading gives, whatever of it nobody wrote, and writing it is writing its bytes.
        #[test]
        fn a_payload_is_its_bytes(
            written in proptest::collection::vec((0..5 * PAGE as u64, 1..3000u64, 0..40u64, any::<bool>()), 0..6),
            (offset, length) in (0..4 * PAGE as u64, 1..4 * PAGE as u64),
            span in 0..60u64,
            onto in 0..PAGE as u64,
        ) {
            let bound = 8 * PAGE as u64;
            let new = || Content {
                base: Sparse::new(bound),
                recent: Vec::new(),
                next: u64::MAX,
                readers: VecDeque::from([(0, true)]),
                first_reader: 0,
            };
            let mut from = new();
            for (index, (at, size, span, is_timed)) in written.into_iter().enumerate() {
                let bytes = vec![index as u8 + 1; size as usize].into_boxed_slice();
                match is_timed {
                    true => from.write(at, bytes.into(), 5, 5 + span, 0),
                    false => from.base.write(at, &bytes),
                }
            }
            let mut seen = vec![0; length as usize];
            from.read(offset, &mut seen, 10, 10 + span, 100);
            let payload = from.take(offset, length, 10, 10 + span, 100);
            prop_assert_eq!(payload.length, length);
            let mut whole = payload.head.to_vec();
            whole.resize(length as usize, 0);
            prop_assert_eq!(&whole, &seen);

            for is_quiet in [true, false] {
                let (mut one, mut other) = (new(), new());
                for content in [&mut one, &mut other] {
                    content.base.write(0, &vec![9; 3 * PAGE]);
                    if is_quiet {
                        content.readers.clear();
                    }
                }
                one.put_now(onto, &payload.head, payload.length, 100);
                other.write_now(onto, &seen, 100);
                let all = |content: &mut Content| {
                    let mut bytes = vec![0; bound as usize];
                    content.read(0, &mut bytes, 200, 200, 200);
                    bytes
                };
                prop_assert_eq!(all(&mut one), all(&mut other));
                one.write(onto, payload.clone(), 300, 350, 300);
                other.write(onto, seen.clone().into_boxed_slice().into(), 300, 350, 300);
                prop_assert_eq!(all(&mut one), all(&mut other));
            }
        }

        /// Zeros that nobody wrote are what others are made of, however writes lie over each other and in time.
        #[test]
        fn zeros_are_folded_like_other_bytes(
            writes in proptest::collection::vec(
                (0..LENGTH, 1..400u64, 0..60u64, 0..60u64, proptest::bool::weighted(0.8)),
                2..8,
            ),
            looks in proptest::collection::vec(1..60u64, 1..6),
        ) {
            let new = || {
                let mut base = Sparse::new(LENGTH);
                base.write(0, &[9; LENGTH as usize]);
                let (recent, readers) = (Vec::new(), VecDeque::new());
                Content { base, recent, next: u64::MAX, readers, first_reader: 0 }
            };
            let (mut counted, mut written) = (new(), new());
            for (offset, length, lead, span, is_zero) in writes {
                let length = length.min(LENGTH - offset);
                let (start, end) = (1 + lead, 1 + lead + span);
                let whole = Payload::from(vec![if is_zero { 0 } else { 3 }; length as usize].into_boxed_slice());
                let short = if is_zero { Payload { length, head: Box::default() } } else { whole.clone() };
                counted.write(offset, short, start, end, 0);
                written.write(offset, whole, start, end, 0);
            }
            let mut now = 0;
            for look in looks {
                now += look;
                let seen = |content: &mut Content| {
                    let mut bytes = vec![1; LENGTH as usize];
                    content.read(0, &mut bytes, now, now, now);
                    bytes
                };
                prop_assert_eq!(seen(&mut counted), seen(&mut written), "at {}", now);
            }
        }

        /// However writes and readers lie in time, a read gives what a replay of every line gives.
        #[test]
        fn every_line_is_seen_as_of_its_own_time(steps in proptest::collection::vec(step(), 1..60)) {
            let mut content = Content {
                base: Sparse::new(LENGTH),
                recent: Vec::new(),
                next: u64::MAX,
                readers: VecDeque::new(),
                first_reader: 0,
            };
            // When each byte became what, in the order of being made known.
            let mut past: Vec<Vec<(u64, u8)>> = vec![vec![(0, 0)]; LENGTH as usize];
            let mut remember = |offset: u64, length: u64, start: u64, end: u64, value: u8| {
                let (first, count) = lines_of(offset, length);
                for at in offset..offset + length {
                    let when = line_time(start, end, at / LINE - first, count);
                    past[at as usize].push((when, value));
                }
                past.clone()
            };
            let mut history = remember(0, 1, 0, 0, 0);
            let mut now = 1;
            let mut pending: VecDeque<(u64, u64, u64, u64)> = VecDeque::new();
            for (index, step) in steps.into_iter().enumerate() {
                let value = index as u8 + 1;
                match step {
                    Step::Pass(span) => now += span,
                    Step::Store { offset, length } => {
                        content.write_now(offset, &vec![value; length as usize], now);
                        history = remember(offset, length, now, now, value);
                    }
                    Step::Write { offset, length, lead, span } => {
                        let (start, end) = (now + lead, now + lead + span);
                        let bytes = vec![value; length as usize].into_boxed_slice();
                        content.write(offset, bytes.into(), start, end, now);
                        history = remember(offset, length, start, end, value);
                    }
                    Step::Read { offset, length, span } => {
                        content.readers.push_back((now, true));
                        pending.push_back((offset, length, now, now + span));
                    }
                }
                while let Some(&(offset, length, start, end)) = pending.front() {
                    if end > now {
                        break;
                    }
                    let mut seen = vec![0; length as usize];
                    content.read(offset, &mut seen, start, end, now);
                    content.readers.pop_front();
                    pending.pop_front();
                    let (first, count) = lines_of(offset, length);
                    for (byte, at) in seen.iter().zip(offset..) {
                        let when = line_time(start, end, at / LINE - first, count);
                        let known = history[at as usize].iter().enumerate().filter(|(_, (t, _))| *t <= when);
                        let last = known.max_by_key(|(index, (t, _))| (*t, *index)).map(|(_, (_, v))| *v);
                        prop_assert_eq!(Some(*byte), last, "byte {}", at);
                    }
                }
            }
        }
    }
}
