//! Independent work on every core.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs `job` for each number below `count` on every core; answers in order, so that the number of threads
/// decides nothing.
pub fn side_by_side<T: Send>(count: usize, job: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    side_by_side_with(count, threads, || (), |(), index| job(index))
}

/// [`side_by_side`] on so many threads, each with a tool of its own, which remembers what it has seen.
pub fn side_by_side_with<S, T: Send>(
    count: usize,
    threads: usize,
    tool: impl Fn() -> S + Sync,
    job: impl Fn(&S, usize) -> T + Sync,
) -> Vec<T> {
    let slots: Vec<Mutex<Option<T>>> = (0..count).map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, count.max(1)) {
            scope.spawn(|| {
                let tool = tool();
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(slot) = slots.get(index) else { return };
                    let answer = job(&tool, index);
                    *slot.lock().expect("no job panics with the lock held") = Some(answer);
                }
            });
        }
    });
    let taken = slots.into_iter().map(|slot| slot.into_inner().expect("no job panics with the lock held"));
    taken.map(|answer| answer.expect("every job ran")).collect()
}
