//! Parsers against mutated messages: no panic, nothing kept that was not sent, and what is read can be
//! written and read again.
//!
//! `OFFPATH_FUZZ_SECONDS=600 cargo test -p offpath-mongo --release --test fuzz` runs each for 10
//! minutes; the default is one second. `OFFPATH_FUZZ_SEED` starts elsewhere.

use bson::{Bson, Document, doc};
use offpath_mongo::map::{Map, MongoEndpoint};
use offpath_mongo::scram::Exchange;
use offpath_mongo::wire;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Lengths, types and flags that decide how bytes are read.
const WORDS: &[i32] = &[-1, 0, 1, 2, 4, 5, 16, 20, 21, 127, 2013, 48_000_001, i32::MAX, i32::MIN];
/// What numbers in texts are replaced by.
const NUMBERS: &[&str] =
    &["-1", "0", "1", "4095", "4096", "16383", "16384", "4294967296", "99999999999999999999", "1e9", "nan"];

fn below(random: &mut ChaCha8Rng, bound: usize) -> usize {
    (random.next_u64() % bound.max(1) as u64) as usize
}

/// One to four changes of a message: bytes flipped, cut, duplicated, spliced, numbers replaced.
fn mutate(seeds: &[Vec<u8>], random: &mut ChaCha8Rng) -> Vec<u8> {
    let mut message = seeds[below(random, seeds.len())].clone();
    for _ in 0..1 + below(random, 4) {
        let (a, b) = (below(random, message.len() + 1), below(random, message.len() + 1));
        let (low, high) = (a.min(b), a.max(b));
        match below(random, 7) {
            0 if low < message.len() => message[low] ^= 1 << below(random, 8),
            1 => drop(message.drain(low..high)),
            2 => {
                let part = message[low..high].to_vec();
                message.splice(low..low, part);
            }
            3 => {
                let other = &seeds[below(random, seeds.len())];
                message.splice(low..high, other.iter().copied());
            }
            4 if low + 4 <= message.len() => {
                let word = WORDS[below(random, WORDS.len())];
                message[low..low + 4].copy_from_slice(&word.to_le_bytes());
            }
            5 => {
                let digit = |at: &usize| message[*at].is_ascii_digit();
                let starts: Vec<usize> =
                    (0..message.len()).filter(|at| digit(at) && (*at == 0 || !digit(&(at - 1)))).collect();
                if !starts.is_empty() {
                    let at = starts[below(random, starts.len())];
                    let length = message[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                    let number = NUMBERS[below(random, NUMBERS.len())];
                    message.splice(at..at + length, number.bytes());
                }
            }
            _ => message.insert(low, random.next_u32() as u8),
        }
        message.truncate(8 << 10);
    }
    message
}

/// Most memory that this process ever had, in KiB, where the kernel tells it.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or_else(|| "unknown".to_string(), |text| text.trim().to_string())
}

/// `at_a_time` messages are read between two looks at the clock.
fn fuzz(name: &str, seeds: &[Vec<u8>], at_a_time: u64, mut check: impl FnMut(&[u8])) {
    let number = |variable: &str| match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable} = {text} is not a number")),
        Err(_) => 1u64,
    };
    let (seconds, start) = (number("OFFPATH_FUZZ_SECONDS"), number("OFFPATH_FUZZ_SEED"));
    for seed in seeds {
        check(seed);
    }
    let began = Instant::now();
    let mut runs = 0u64;
    while began.elapsed() < Duration::from_secs(seconds) {
        for _ in 0..at_a_time {
            // Each message has a generator of its own, so that a failure is replayed by its number.
            let seed = start.wrapping_add(runs).wrapping_mul(0x1234_5678_9abc_def1);
            let message = mutate(seeds, &mut ChaCha8Rng::seed_from_u64(seed));
            let checked = catch_unwind(AssertUnwindSafe(|| check(&message)));
            assert!(
                checked.is_ok(),
                "{name}, seed {start}, run {runs}: {:?}",
                message.escape_ascii().to_string()
            );
            runs += 1;
        }
    }
    println!("{name}: {runs} messages in {seconds} s, {} of memory at most", peak_memory());
}

/// Values in a document, those within others too.
fn values(document: &Document) -> usize {
    fn count(value: &Bson) -> usize {
        1 + match value {
            Bson::Document(inner) => values(inner),
            Bson::Array(inner) => inner.iter().map(count).sum(),
            _ => 0,
        }
    }
    document.values().map(count).sum()
}

#[test]
fn messages() {
    let answer = doc! {
        "ok": 1.0,
        "cursor": { "firstBatch": [{ "_id": "a", "n": 7_i64 }, { "_id": 5, "v": [true, Bson::Null] }], "id": 0_i64 },
        "errmsg": "no",
        "payload": bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: vec![1, 2, 3] },
    };
    let deep = (0..20).fold(doc! {}, |inner, _| doc! { "d": inner });
    let mut checked = wire::encode(3, &doc! { "ok": 1 }).expect("a message");
    checked[16] = 1;
    checked.extend_from_slice(&[0; 4]);
    let length = (checked.len() as i32).to_le_bytes();
    checked[..4].copy_from_slice(&length);
    let seeds = [answer, deep].map(|document| wire::encode(7, &document).expect("a message"));
    let seeds = [&seeds[..], &[checked]].concat();
    fuzz("messages", &seeds, 1_000, |message| {
        let read = |message: &[u8]| {
            let Ok((_, document)) = wire::decode(message) else { return };
            // Each value has a type, a name's end and its bytes.
            assert!(values(&document) <= message.len() / 2);
            let again = wire::encode(1, &document).expect("what was read can be written");
            assert!(again.len() <= message.len() + 4);
            let (_, second) = wire::decode(&again).expect("what is written is read");
            assert_eq!(second.to_vec().ok(), document.to_vec().ok());
        };
        read(message);
        // With the right length most mutations get behind the header.
        let mut whole = message.to_vec();
        if let (Some(first), Ok(length)) = (whole.get_mut(..4), i32::try_from(message.len())) {
            first.copy_from_slice(&length.to_le_bytes());
            read(&whole);
        }
        if let Ok(Some(length)) = wire::length(message) {
            assert!((16..=wire::MOST_BYTES).contains(&length));
        }
    });
}

#[test]
fn exchanges() {
    let seeds = [
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".to_vec(),
        b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=".to_vec(),
    ];
    fuzz("exchanges", &seeds, 50, |message| {
        let Ok(message) = std::str::from_utf8(message) else { return };
        let mut exchange = Exchange::new("user", "pencil", "rOprNGfwEbeRWgbNEkqO").expect("an exchange");
        assert!(exchange.check(message).is_err(), "nothing was proved yet");
        if let Ok(last) = exchange.last(message) {
            assert!(last.starts_with("c=biws,r=rOprNGfwEbeRWgbNEkqO") && last.len() < message.len() + 100);
            assert!(exchange.check(message).is_err(), "a first message proves nothing");
        }
    });
}

#[test]
fn maps() {
    let endpoint = |name: &str, port: u16, weight: f64| MongoEndpoint {
        name: name.to_string(),
        address: format!("127.0.0.1:{port}"),
        weight,
    };
    let two = || vec![endpoint("a", 1, 2.0), endpoint("b", 2, 1.0)];
    let hashed = Map::hashed("x.y", two()).expect("a map").text().expect("a text");
    let ranges = Map::ranges("x.y", two(), &["g".into()]).expect("a map").text().expect("a text");
    fuzz("maps", &[hashed.into_bytes(), ranges.into_bytes()], 100, |message| {
        let text = String::from_utf8_lossy(message);
        if let Ok(map) = Map::parse(&text) {
            assert!(map.chunk.len() <= text.lines().count());
            let again = map.text().expect("what was read can be written");
            assert_eq!(Map::parse(&again).expect("what is written is read"), map);
        }
    });
}
