//! How a bandwidth test posts: one thread for all queue pairs, which fills the first one before it looks at the next,
//! and learns of completions by turns of `cq_moderation` requests. What stations carry is given; how much of it the
//! thread, the queue pairs and the requests in flight let through follows.

use offpath_quantity::Time;
use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

/// Rates of loops that were followed already: a number that moves none of what a run meets leads to the same loop.
#[derive(Debug, Default)]
pub struct KnownLoops(Mutex<HashMap<PostingLoop, f64>>);

/// Loops that are remembered; beyond them all are forgotten, so that memory has an end.
const MOST_KNOWN: usize = 200_000;

impl KnownLoops {
    /// The rate of a loop, followed where it is new.
    pub(crate) fn rate_per_s(&self, posting: &PostingLoop) -> f64 {
        let known = || self.0.lock().expect("nobody panics with the lock held");
        if let Some(rate) = known().get(posting) {
            return *rate;
        }
        let rate = posting.rate_per_s();
        let mut known = known();
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.insert(*posting, rate);
        rate
    }
}

/// What one thread posts, and what its requests meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PostingLoop {
    /// Queue pairs, which the thread serves in turn.
    pub queue_pairs: u64,
    /// Requests of each queue pair that may be posted and not yet seen to be completed.
    pub depth: u64,
    /// Requests of a queue pair behind one completion.
    pub moderation: u64,
    /// Completions that are taken in one look.
    pub poll_batch: u64,
    /// Requests of each queue pair that the NIC may have in flight; absent where nothing but the depth bounds them.
    pub window: Option<u64>,
    /// Time of the thread for each request.
    pub post: Time,
    /// Time of the thread for each completion.
    pub poll: Time,
    /// Until the program sees a completion that it waits for, which the latency has in it.
    pub look: Time,
    /// Time that a request keeps its queue pair.
    pub queue_pair: Time,
    /// Time that a request keeps the station that binds.
    pub station: Time,
    /// Latency of a request alone, from posting to its completion.
    pub latency: Time,
    /// Requests of each queue pair; absent where the test runs for a time.
    pub requests: Option<u64>,
}

/// Requests that are followed at most, of all queue pairs together. Longer runs go on as their second half did.
const MOST_REQUESTS: u64 = 40_000;
/// Requests of one queue pair that are followed: several turns of the usual completions.
const MOST_OF_ONE: u64 = 1_500;

/// Requests of one queue pair from which on it is looked for what comes again. With fewer most of them are over before it does, and each look
/// goes through all queue pairs, of which there are many then.
const LEAST_TO_SKIP: u64 = 64;

/// About how many requests a run of so many queue pairs takes to follow.
pub(crate) fn followed_requests(queue_pairs: u64) -> u64 {
    queue_pairs.saturating_mul(MOST_OF_ONE).min(MOST_REQUESTS)
}

/// A queue pair; what comes to more than it ever has counts as that.
#[derive(Clone, Copy, Default)]
struct QueuePair {
    posted: u32,
    seen: u32,
    waiting: u32,
    in_flight: u32,
    completed: u32,
    /// Of these since the last completion that was told.
    untold: u32,
    busy: bool,
}

/// Queue pairs with a time each, in the order of times.
#[derive(Clone)]
struct Line {
    /// A power of two of places.
    places: Vec<(Time, u32)>,
    first: usize,
    count: usize,
}

impl Line {
    fn of(most: u64) -> Line {
        let places = usize::try_from(most.max(1)).unwrap_or(usize::MAX).next_power_of_two();
        Line { places: vec![(Time::ZERO, 0); places], first: 0, count: 0 }
    }

    #[inline]
    fn next(&self) -> Time {
        if self.count == 0 { NEVER } else { self.places[self.first & (self.places.len() - 1)].0 }
    }

    #[inline]
    fn push(&mut self, at: Time, index: usize) {
        let place = (self.first + self.count) & (self.places.len() - 1);
        self.places[place] = (at, index as u32);
        self.count += 1;
    }

    #[inline]
    fn pop(&mut self) -> usize {
        let index = self.places[self.first & (self.places.len() - 1)].1;
        self.first = (self.first + 1) & (self.places.len() - 1);
        self.count -= 1;
        index as usize
    }

    fn iter(&self) -> impl Iterator<Item = (Time, u32)> {
        (0..self.count).map(|place| self.places[(self.first + place) & (self.places.len() - 1)])
    }

    fn shift(&mut self, by: Time) {
        for place in 0..self.count {
            let at = (self.first + place) & (self.places.len() - 1);
            self.places[at].0 += by;
        }
    }
}

/// Later than everything.
const NEVER: Time = Time::from_ps(u64::MAX);

/// Queue pairs that have room for a request, a bit each, and of every 64 of these whether there is one: among thousands few have room, and
/// the next one is asked for with each request.
#[derive(Clone)]
struct Ready {
    words: Vec<u64>,
    any: Vec<u64>,
}

impl Ready {
    fn all(count: usize) -> Ready {
        let words = count.div_ceil(64);
        let mut ready = Ready { words: vec![0; words], any: vec![0; words.div_ceil(64)] };
        (0..count).for_each(|index| ready.insert(index));
        ready
    }

    fn insert(&mut self, index: usize) {
        self.words[index / 64] |= 1 << (index % 64);
        self.any[index / 4096] |= 1 << (index / 64 % 64);
    }

    fn remove(&mut self, index: usize) {
        self.words[index / 64] &= !(1 << (index % 64));
        if self.words[index / 64] == 0 {
            self.any[index / 4096] &= !(1 << (index / 64 % 64));
        }
    }

    /// The first one from a place on.
    fn from(&self, at: usize) -> Option<usize> {
        let place = at / 64;
        let own = self.words.get(place).map_or(0, |word| word & u64::MAX << (at % 64));
        if own != 0 {
            return Some(place * 64 + own.trailing_zeros() as usize);
        }
        let next = Ready::first(&self.any, place + 1)?;
        Some(next * 64 + self.words[next].trailing_zeros() as usize)
    }

    /// The first bit of words that is set, from a place on.
    fn first(words: &[u64], at: usize) -> Option<usize> {
        let mut mask = u64::MAX << (at % 64);
        for (place, word) in words.iter().enumerate().skip(at / 64) {
            let found = word & mask;
            if found != 0 {
                return Some(place * 64 + found.trailing_zeros() as usize);
            }
            mask = u64::MAX;
        }
        None
    }
}

/// Everything that decides how a loop goes on, where its thread looks for completions.
#[derive(Clone)]
struct State {
    station_free: Time,
    /// Each request keeps its queue pair for the same time, so they are free again in the order in which they began.
    free: Line,
    arriving: Line,
    completions: VecDeque<(u32, u32)>,
    pair: Vec<QueuePair>,
    ready: Ready,
}

/// A state at a look.
struct Look {
    now: Time,
    /// When the thread is done with what it took.
    until: Time,
    state: State,
    /// Requests that had ended.
    ended: usize,
}

impl Look {
    /// Whether from another look on everything goes as from this one, but later: all that is counted from the look is the same.
    fn is_again(&self, now: Time, until: Time, state: &State) -> bool {
        let own = &self.state;
        if own.arriving.count != state.arriving.count
            || own.free.count != state.free.count
            || own.completions != state.completions
            || own.ready.words != state.ready.words
        {
            return false;
        }
        let is_later = |one: Time, two: Time| one.saturating_sub(self.now) == two.saturating_sub(now);
        let is_same = |one: &Line, two: &Line| {
            one.iter()
                .zip(two.iter())
                .all(|((one, first), (two, second))| first == second && is_later(one, two))
        };
        let is_pair = |(one, two): (&QueuePair, &QueuePair)| {
            one.posted - one.seen == two.posted - two.seen
                && (one.untold, one.waiting, one.in_flight, one.busy)
                    == (two.untold, two.waiting, two.in_flight, two.busy)
        };
        is_later(self.until, until)
            && is_later(own.station_free, state.station_free)
            && own.pair.iter().zip(&state.pair).all(is_pair)
            && is_same(&own.free, &state.free)
            && is_same(&own.arriving, &state.arriving)
    }

    /// How often what came between this look and another comes again before a queue pair posts its last request of so many.
    fn repeats(&self, later: &State, of_one: u32) -> u64 {
        let left = later.pair.iter().zip(&self.state.pair).filter_map(|(own, before)| {
            (of_one - 1).saturating_sub(own.posted).checked_div(own.posted - before.posted)
        });
        u64::from(left.min().unwrap_or(0))
    }
}

impl PostingLoop {
    /// Requests per second, from the first post to the last completion.
    pub(crate) fn rate_per_s(&self) -> f64 {
        let pairs = self.queue_pairs.max(1);
        let (depth, moderation) = (self.depth.max(1), self.moderation.max(1));
        // Several turns of completions, as far as so many queue pairs leave room for them.
        let several = MOST_OF_ONE.max(depth.saturating_add(moderation).saturating_mul(2));
        let most = (MOST_REQUESTS / pairs).max(2).min(several);
        let of_one = self.requests.map_or(most, |requests| requests.clamp(1, most));
        let ended = self.follow(pairs, depth, moderation.min(depth), of_one, most >= LEAST_TO_SKIP);
        let total = ended.len();
        let last = ended[total - 1];
        // The rest goes on as the second half did.
        let half = total / 2;
        let span = last.saturating_sub(ended[half]);
        let each = span.as_seconds() / (total - 1 - half).max(1) as f64;
        match self.requests {
            Some(requests) if requests <= of_one => total as f64 / last.as_seconds(),
            Some(requests) => {
                let all = requests as f64 * pairs as f64;
                all / (last.as_seconds() + (all - total as f64) * each)
            }
            None => 1.0 / each,
        }
    }

    /// When each request ended, in order. Where it `skips`, what comes again is not followed again: the times are the same.
    fn follow(&self, pairs: u64, depth: u64, moderation: u64, of_one: u64, mut skips: bool) -> Vec<Time> {
        let total = (pairs * of_one) as usize;
        let of_one = of_one as u32;
        // Beyond what a queue pair has of requests nothing bounds it.
        let most = |count: u64| u32::try_from(count).unwrap_or(u32::MAX).min(of_one);
        let (depth, moderation, window) =
            (most(depth), most(moderation), most(self.window.unwrap_or(u64::MAX)));
        let mut ended: Vec<Time> = Vec::with_capacity(total);
        // After the station a request has what is left of its latency alone.
        let rest = self.latency.saturating_sub(self.post + self.queue_pair.max(self.station));
        let mut state = State {
            station_free: Time::ZERO,
            free: Line::of(pairs),
            arriving: Line::of(pairs * u64::from(window.min(depth))),
            completions: VecDeque::new(),
            pair: vec![QueuePair::default(); pairs as usize],
            ready: Ready::all(pairs as usize),
        };
        // When the thread is done with what it does, and what it posts then.
        let (mut done, mut posting) = (Time::ZERO, None::<usize>);
        let mut at = 0usize;
        let batch = usize::try_from(self.poll_batch.max(1)).unwrap_or(usize::MAX);
        // Looks are held against one that stays for ever more of them, so that a turn of any length is found.
        let mut known: Option<Look> = None;
        let (mut looks, mut stays) = (0u64, 1u64);
        while ended.len() < total {
            // The thread, queue pairs and completions in the order of their times; equal times in this order.
            let (free, arrives) = (state.free.next(), state.arriving.next());
            let is_waiting = done == NEVER;
            let (now, touched) = if done <= free && done <= arrives {
                if is_waiting {
                    break;
                }
                let now = std::mem::replace(&mut done, NEVER);
                if let Some(index) = posting {
                    let own = &mut state.pair[index];
                    own.posted += 1;
                    own.waiting += 1;
                    if own.posted == of_one || own.posted - own.seen == depth {
                        state.ready.remove(index);
                    }
                }
                (now, posting)
            } else if free <= arrives {
                let index = state.free.pop();
                state.pair[index].busy = false;
                (free, Some(index))
            } else {
                let index = state.arriving.pop();
                let own = &mut state.pair[index];
                own.in_flight -= 1;
                own.completed += 1;
                own.untold += 1;
                ended.push(arrives);
                if own.untold == moderation || own.completed == of_one {
                    state.completions.push_back((index as u32, std::mem::take(&mut own.untold)));
                }
                (arrives, Some(index))
            };
            if let Some(index) = touched {
                let own = &mut state.pair[index];
                if !own.busy && own.waiting > 0 && own.in_flight < window {
                    own.waiting -= 1;
                    own.in_flight += 1;
                    own.busy = true;
                    let left = now + self.queue_pair;
                    state.free.push(left, index);
                    state.station_free = state.station_free.max(now) + self.station;
                    state.arriving.push(state.station_free.max(left) + rest, index);
                }
            }
            if done != NEVER {
                continue;
            }
            // The thread fills the next queue pair that has room, and looks for completions after the last.
            posting = state.ready.from(at);
            if let Some(index) = posting {
                (at, done) = (index, now + self.post);
                continue;
            }
            at = 0;
            if state.completions.is_empty() {
                posting = state.ready.from(0);
                if let Some(index) = posting {
                    (at, done) = (index, now + self.post);
                }
                continue;
            }
            // What ends a wait is seen within its latency: the thread is busy with it beyond that alone.
            let mut spent = Time::ZERO;
            let mut within = if is_waiting { self.look } else { Time::ZERO };
            for _ in 0..state.completions.len().min(batch) {
                let Some((index, told)) = state.completions.pop_front() else { break };
                let own = &mut state.pair[index as usize];
                own.seen += told;
                if own.posted < of_one {
                    state.ready.insert(index as usize);
                }
                spent += self.poll.saturating_sub(std::mem::take(&mut within));
            }
            done = now + spent;
            if !skips {
                continue;
            }
            match known.take_if(|known| known.is_again(now, done, &state)) {
                Some(before) => {
                    // What came since comes again, later each time, until a limit that counts is near.
                    let times = before.repeats(&state, of_one);
                    let period = now - before.now;
                    let turn = ended.len() - before.ended;
                    for _ in 0..times * turn as u64 {
                        ended.push(ended[ended.len() - turn] + period);
                    }
                    for (own, before) in state.pair.iter_mut().zip(&before.state.pair) {
                        let more = (own.posted - before.posted) * times as u32;
                        own.posted += more;
                        own.seen += more;
                        own.completed += more;
                    }
                    let later = Time::from_ps(period.ps() * times);
                    state.free.shift(later);
                    state.arriving.shift(later);
                    state.station_free += later;
                    done += later;
                    skips = false;
                }
                None => {
                    looks += 1;
                    if looks == stays {
                        known = Some(Look { now, until: done, state: state.clone(), ended: ended.len() });
                        (looks, stays) = (0, stays * 2);
                    }
                }
            }
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain() -> PostingLoop {
        PostingLoop {
            queue_pairs: 1,
            depth: 128,
            moderation: 100,
            poll_batch: 16,
            window: None,
            post: Time::from_ns(100),
            poll: Time::from_ns(100),
            look: Time::ZERO,
            queue_pair: Time::from_ns(50),
            station: Time::from_ns(10),
            latency: Time::from_us(2),
            requests: None,
        }
    }

    fn is_near(found: f64, expected: f64, share: f64) {
        assert!((found / expected - 1.0).abs() < share, "{found} is not {expected}");
    }

    /// Each part binds alone where the others are fast.
    #[test]
    fn what_is_slowest_binds() {
        is_near(plain().rate_per_s(), 1e9 / 101.0, 0.01);
        let of_station = PostingLoop { station: Time::from_ns(500), ..plain() };
        is_near(of_station.rate_per_s(), 2e6, 0.01);
        let of_queue_pair = PostingLoop { queue_pair: Time::from_ns(400), ..plain() };
        is_near(of_queue_pair.rate_per_s(), 2.5e6, 0.01);
        let of_window = PostingLoop { window: Some(4), latency: Time::from_us(4), ..plain() };
        is_near(of_window.rate_per_s(), 4.0 / 3.9e-6, 0.01);
    }

    /// With one request in flight the rate is that of the latency, which has the look at its completion in it, and of what the
    /// thread does beyond that look.
    #[test]
    fn one_request_at_a_time_takes_its_latency() {
        for (look_ns, each) in [(100, 2.0e-6), (280, 2.0e-6), (60, 2.04e-6), (0, 2.1e-6)] {
            let one = PostingLoop { depth: 1, moderation: 1, look: Time::from_ns(look_ns), ..plain() };
            is_near(one.rate_per_s(), 1.0 / each, 1e-3);
        }
    }

    /// While one queue pair is filled the other runs dry, which a run of few requests shows.
    #[test]
    fn two_queue_pairs_filled_by_turns_carry_less_than_twice_one() {
        let one = PostingLoop {
            post: Time::from_ns(275),
            queue_pair: Time::from_ns(414),
            station: Time::from_ns(286),
            requests: Some(1000),
            ..plain()
        };
        let of = |queue_pairs| PostingLoop { queue_pairs, ..one }.rate_per_s();
        assert!(of(1) * 1.05 < of(2) && of(2) < 0.99 * of(16), "{} {} {}", of(1), of(2), of(16));
        let long = PostingLoop { queue_pairs: 2, requests: None, ..one };
        is_near(long.rate_per_s(), 1e9 / 286.0, 0.01);
    }

    /// A run of few requests pays for its start and its end.
    #[test]
    fn a_short_run_is_slower() {
        let short = PostingLoop { requests: Some(20), ..plain() };
        is_near(short.rate_per_s(), 20.0 / 4e-6, 0.05);
        let long = PostingLoop { requests: Some(1_000_000), ..plain() };
        is_near(long.rate_per_s(), plain().rate_per_s(), 0.01);
    }

    /// What comes again is the same to the picosecond, whatever binds, and ends the same.
    #[test]
    fn what_is_skipped_is_what_is_followed() {
        let mut tried = 0;
        for (queue_pairs, depth, moderation) in
            [(1, 128, 100), (1, 1, 1), (1, 7, 3), (2, 128, 100), (3, 64, 64), (8, 128, 1), (5, 16, 10)]
        {
            for post in [0, 1, 97_003, 277_200] {
                for station in [0, 10_007, 286_101, 3_000_000] {
                    for (queue_pair, window) in [(50_001, None), (414_013, Some(16)), (129_600, Some(1))] {
                        for of_one in [1, 2, 150, 1000, 1500] {
                            let one = PostingLoop {
                                queue_pairs,
                                depth,
                                moderation,
                                window,
                                post: Time::from_ps(post),
                                station: Time::from_ps(station),
                                queue_pair: Time::from_ps(queue_pair),
                                poll: Time::from_ps(33_331),
                                ..plain()
                            };
                            let of = |skips| one.follow(queue_pairs, depth, moderation, of_one, skips);
                            assert_eq!(of(true), of(false), "{one:?} {of_one}");
                            tried += 1;
                        }
                    }
                }
            }
        }
        assert!(tried > 1000);
    }

    /// The next queue pair with room is the one that looking at each of them finds.
    #[test]
    fn the_next_one_with_room_is_found_among_thousands() {
        for count in [1, 64, 65, 4096, 4097, 16_384] {
            let mut ready = Ready::all(count);
            let mut plain = vec![true; count];
            let mut state = 7u64;
            for turn in 0..3_000 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let index = (state >> 33) as usize % count;
                // Most lose their room at first, and few have it then.
                plain[index] = state >> 32 & 7 == 0;
                if plain[index] {
                    ready.insert(index)
                } else {
                    ready.remove(index)
                }
                if turn == 100 {
                    (0..count).filter(|index| index % 911 != 5).for_each(|index| {
                        ready.remove(index);
                        plain[index] = false;
                    });
                }
                let at = (state >> 40) as usize % (count + 1);
                let expected = (at..count).find(|index| plain[*index]);
                assert_eq!(ready.from(at), expected, "{count} {turn} {at}");
            }
        }
    }

    /// Nothing is asked for that never ends: the smallest and the greatest of every part.
    #[test]
    fn every_run_ends() {
        for queue_pairs in [1, 3, 16_384] {
            for depth in [1, 5, 4096] {
                for moderation in [1, 7, 4096] {
                    for requests in [None, Some(1), Some(5_000)] {
                        let one = PostingLoop {
                            queue_pairs,
                            depth,
                            moderation,
                            requests,
                            window: Some(1),
                            poll_batch: 1,
                            post: Time::ZERO,
                            ..plain()
                        };
                        assert!(one.rate_per_s() > 0.0, "{one:?}");
                    }
                }
            }
        }
    }
}
