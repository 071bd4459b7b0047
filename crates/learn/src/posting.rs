//! How a bandwidth test posts: one thread for all queue pairs, which fills the first one before it looks at the next,
//! and learns of completions by turns of `cq_moderation` requests. What stations carry is given; how much of it the
//! thread, the queue pairs and the requests in flight let through follows.

use offpath_quantity::Time;
use std::collections::VecDeque;

/// What one thread posts, and what its requests meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// About how many requests a run of so many queue pairs takes to follow.
pub(crate) fn followed_requests(queue_pairs: u64) -> u64 {
    queue_pairs.saturating_mul(MOST_OF_ONE).min(MOST_REQUESTS)
}

struct QueuePair {
    posted: u64,
    seen: u64,
    waiting: u64,
    in_flight: u64,
    completed: u64,
    busy: bool,
}

/// Queue pairs that have room for a request, a bit each.
struct Ready(Vec<u64>);

impl Ready {
    fn all(count: usize) -> Ready {
        let mut ready = Ready(vec![0; count.div_ceil(64)]);
        (0..count).for_each(|index| ready.insert(index));
        ready
    }

    fn insert(&mut self, index: usize) {
        self.0[index / 64] |= 1 << (index % 64);
    }

    fn remove(&mut self, index: usize) {
        self.0[index / 64] &= !(1 << (index % 64));
    }

    /// The first one from a place on.
    fn from(&self, at: usize) -> Option<usize> {
        let mut mask = u64::MAX << (at % 64);
        for (place, word) in self.0.iter().enumerate().skip(at / 64) {
            let found = word & mask;
            if found != 0 {
                return Some(place * 64 + found.trailing_zeros() as usize);
            }
            mask = u64::MAX;
        }
        None
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
        let ended = self.follow(pairs, depth, moderation.min(depth), of_one);
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

    /// When each request ended, in order.
    fn follow(&self, pairs: u64, depth: u64, moderation: u64, of_one: u64) -> Vec<Time> {
        let blank = || QueuePair { posted: 0, seen: 0, waiting: 0, in_flight: 0, completed: 0, busy: false };
        let mut pair: Vec<QueuePair> = (0..pairs).map(|_| blank()).collect();
        let total = pairs * of_one;
        let mut ended: Vec<Time> = Vec::with_capacity(total as usize);
        // After the station a request has what is left of its latency alone.
        let rest = self.latency.saturating_sub(self.post + self.queue_pair.max(self.station));
        let window = self.window.unwrap_or(u64::MAX);
        let mut station_free = Time::ZERO;
        // Each request keeps its queue pair for the same time, so they are free again in the order in which they began.
        let mut free: VecDeque<(Time, usize)> = VecDeque::new();
        let mut arriving: VecDeque<(Time, usize)> = VecDeque::new();
        let mut completions: VecDeque<(usize, u64)> = VecDeque::new();
        let mut thread = Some((Time::ZERO, None::<usize>));
        let mut ready = Ready::all(pair.len());
        let mut at = 0usize;
        let batch = usize::try_from(self.poll_batch.max(1)).unwrap_or(usize::MAX);
        while (ended.len() as u64) < total {
            // The thread, queue pairs and completions in the order of their times; equal times in this order.
            let times = [
                thread.map(|(time, _)| time),
                free.front().map(|(time, _)| *time),
                arriving.front().map(|(time, _)| *time),
            ];
            let mut next: Option<(Time, usize)> = None;
            for (index, time) in times.into_iter().enumerate() {
                if let Some(time) = time
                    && next.is_none_or(|(least, _)| time < least)
                {
                    next = Some((time, index));
                }
            }
            let Some((now, which)) = next else { break };
            let mut touched = None;
            match which {
                0 => {
                    if let Some((_, Some(index))) = thread.take() {
                        let own = &mut pair[index];
                        own.posted += 1;
                        own.waiting += 1;
                        if own.posted == of_one || own.posted - own.seen == depth {
                            ready.remove(index);
                        }
                        touched = Some(index);
                    }
                }
                1 => {
                    if let Some((_, index)) = free.pop_front() {
                        pair[index].busy = false;
                        touched = Some(index);
                    }
                }
                _ => {
                    if let Some((time, index)) = arriving.pop_front() {
                        let own = &mut pair[index];
                        own.in_flight -= 1;
                        own.completed += 1;
                        ended.push(time);
                        if own.completed.is_multiple_of(moderation) || own.completed == of_one {
                            let told = if own.completed.is_multiple_of(moderation) {
                                moderation
                            } else {
                                own.completed % moderation
                            };
                            completions.push_back((index, told));
                        }
                        touched = Some(index);
                    }
                }
            }
            if let Some(index) = touched {
                let own = &mut pair[index];
                if !own.busy && own.waiting > 0 && own.in_flight < window {
                    own.waiting -= 1;
                    own.in_flight += 1;
                    own.busy = true;
                    let left = now + self.queue_pair;
                    free.push_back((left, index));
                    station_free = station_free.max(now) + self.station;
                    arriving.push_back((station_free.max(left) + rest, index));
                }
            }
            if thread.is_some() {
                continue;
            }
            // The thread fills the next queue pair that has room, and looks for completions after the last.
            thread = match ready.from(at) {
                Some(index) => {
                    at = index;
                    Some((now + self.post, Some(at)))
                }
                None if completions.is_empty() => {
                    at = 0;
                    ready.from(0).map(|index| (now + self.post, Some(index)))
                }
                None => {
                    at = 0;
                    let mut spent = Time::ZERO;
                    for (index, told) in completions.drain(..completions.len().min(batch)) {
                        pair[index].seen += told;
                        if pair[index].posted < of_one {
                            ready.insert(index);
                        }
                        spent += self.poll;
                    }
                    Some((now + spent, None))
                }
            };
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

    /// With one request in flight the rate is that of the latency and of the thread's look at the completion.
    #[test]
    fn one_request_at_a_time_takes_its_latency() {
        let one = PostingLoop { depth: 1, moderation: 1, ..plain() };
        is_near(one.rate_per_s(), 1.0 / 2.1e-6, 1e-3);
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
