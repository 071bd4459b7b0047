//! Parsers against mutated messages, in pieces: no panic, no loop, nothing kept that was not sent.
//!
//! `OFFPATH_FUZZ_SECONDS=600 cargo test -p offpath-redis --release --test fuzz` runs each for 10
//! minutes; the default is one second. `OFFPATH_FUZZ_SEED` starts elsewhere.

mod servers;

use offpath_redis::framing::Framer;
use offpath_redis::handshake::psync_reply;
use offpath_redis::payload::{Body, Form, RdbFormat, announcement};
use offpath_redis::resp::{self, Limits, Value};
use offpath_redis::shard::plan::SlotPlan;
use offpath_redis::shard::topology;
use servers::Draws;
use std::time::{Duration, Instant};

const ID: &str = "0123456789abcdef0123456789abcdef01234567";

/// What numbers of a protocol are replaced by.
const NUMBERS: &[&str] = &[
    "-1",
    "0",
    "1",
    "2",
    "40",
    "41",
    "1024",
    "65536",
    "65537",
    "536870912",
    "2147483647",
    "2147483648",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999",
    "+5",
    "05",
    "1e3",
];

/// One to four changes of a message: bytes flipped, cut, duplicated, spliced, numbers replaced.
fn mutate(seeds: &[Vec<u8>], draws: &mut Draws) -> Vec<u8> {
    let mut message = seeds[draws.below(seeds.len() as u64) as usize].clone();
    for _ in 0..1 + draws.below(4) {
        let length = message.len().max(1) as u64;
        let (a, b) = (draws.below(length) as usize, draws.below(length) as usize);
        let (low, high) = (a.min(b).min(message.len()), a.max(b).min(message.len()));
        match draws.below(7) {
            0 if !message.is_empty() => message[low] ^= 1 << draws.below(8),
            1 => drop(message.drain(low..high)),
            2 => {
                let part = message[low..high].to_vec();
                message.splice(low..low, part);
            }
            3 => {
                let other = &seeds[draws.below(seeds.len() as u64) as usize];
                message.splice(low..high, other.iter().copied());
            }
            4 | 5 => {
                let starts: Vec<usize> = (0..message.len())
                    .filter(|at| {
                        message[*at].is_ascii_digit() && (*at == 0 || !message[at - 1].is_ascii_digit())
                    })
                    .collect();
                if !starts.is_empty() {
                    let at = starts[draws.below(starts.len() as u64) as usize];
                    let end = message[at..].iter().position(|byte| !byte.is_ascii_digit());
                    let end = end.map_or(message.len(), |length| at + length);
                    let number = NUMBERS[draws.below(NUMBERS.len() as u64) as usize];
                    message.splice(at..end, number.bytes());
                }
            }
            _ => message.insert(low, draws.next() as u8),
        }
        message.truncate(8 << 10);
    }
    message
}

fn fuzz(name: &str, seeds: &[&str], mut check: impl FnMut(&[u8], &mut Draws)) {
    let number = |variable: &str, default: u64| match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable} = {text} is not a number")),
        Err(_) => default,
    };
    let seconds = number("OFFPATH_FUZZ_SECONDS", 1);
    let start = number("OFFPATH_FUZZ_SEED", 1);
    let seeds: Vec<Vec<u8>> = seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect();
    for seed in &seeds {
        check(seed, &mut Draws(0));
    }
    let began = Instant::now();
    let mut runs = 0u64;
    while began.elapsed() < Duration::from_secs(seconds) {
        for _ in 0..1_000 {
            // Each message has a generator of its own, so that a failure is replayed by its number.
            let mut draws = Draws(start.wrapping_add(runs).wrapping_mul(0x1234_5678_9abc_def1));
            let message = mutate(&seeds, &mut draws);
            let checked =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&message, &mut draws)));
            assert!(
                checked.is_ok(),
                "{name}, seed {start}, run {runs}: {:?}",
                message.escape_ascii().to_string()
            );
            runs += 1;
        }
    }
    let memory = servers::peak_memory(std::process::id()) >> 20;
    println!("{name}: {runs} messages in {seconds} s, {memory} MiB of memory at most");
}

/// Bytes that a reply keeps.
fn kept(value: &Value) -> usize {
    match value {
        Value::Simple(text) | Value::Error(text) | Value::Big(text) => text.len(),
        Value::Bulk(bytes) => bytes.len(),
        Value::Array(elements) => elements.iter().map(kept).sum::<usize>() + elements.len(),
        Value::Map(entries) => {
            entries.iter().map(|(key, value)| kept(key) + kept(value)).sum::<usize>() + entries.len()
        }
        _ => 0,
    }
}

#[test]
fn requests() {
    let seeds = [
        "*3\r\n$8\r\nREPLCONF\r\n$3\r\nACK\r\n$2\r\n42\r\n",
        "PING hello\r\n",
        "\n*1\r\n$4\r\nPING\r\n",
        "*0\r\n",
    ];
    fuzz("requests", &seeds, |message, _| {
        for limits in [Limits::STRANGER, Limits::CLIENT] {
            let mut rest = message;
            while let Ok(Some((request, taken))) = resp::request(rest, limits) {
                assert!(
                    taken > 0
                        && taken <= rest.len()
                        && taken <= limits.bytes
                        && request.len() <= limits.elements
                );
                assert!(request.iter().map(Vec::len).sum::<usize>() <= taken);
                rest = &rest[taken..];
            }
        }
    });
}

#[test]
fn replies() {
    let seeds = [
        "+OK\r\n",
        "-ERR no\r\n",
        ":-5\r\n",
        "$3\r\nabc\r\n",
        "*2\r\n:1\r\n*1\r\n$-1\r\n",
        "%1\r\n+a\r\n~1\r\n#t\r\n",
        "=7\r\ntxt:abc\r\n",
        "!5\r\nERR x\r\n",
        ">2\r\n,1.5\r\n(123456789012345678901\r\n",
        "|1\r\n+a\r\n_\r\n",
    ];
    fuzz("replies", &seeds, |message, draws| {
        let limits = Limits { bytes: 4 << 10, elements: 64, depth: 4 };
        let mut rest = message;
        while let Ok(Some((value, taken))) = resp::reply(rest, limits) {
            assert!(taken > 0 && taken <= rest.len() && kept(&value) <= 2 * taken);
            // A reply that is cut anywhere is not complete, whatever stands in it.
            let cut = draws.below(taken as u64) as usize;
            assert_eq!(resp::reply(&rest[..cut], limits), Ok(None), "cut at {cut}");
            rest = &rest[taken..];
        }
    });
}

#[test]
fn answers_to_psync() {
    let full = format!("+FULLRESYNC {ID} 42\r\n");
    let go_on = format!("+CONTINUE {ID}\r\n");
    fuzz("PSYNC", &[&full, &go_on, "+CONTINUE\r\n", "-NOMASTERLINK no\r\n"], |message, _| {
        if let Ok(Some((value, _))) = resp::reply(message, Limits::CLIENT) {
            let _ = psync_reply(&value);
        }
    });
}

#[test]
fn files() {
    let mark = format!("$EOF:{ID}\r\nREDIS0011 and what is in it {ID}");
    fuzz(
        "files",
        &[&mark, "\n\n$20\r\nVALKEY080 and more..*1\r\n$4\r\nPING\r\n", "-ERR no\r\n"],
        |message, draws| {
            let Ok(Some((form, taken))) = announcement(message) else { return };
            assert!(taken <= message.len());
            let file = &message[taken..];
            let (mut body, mut out, mut at) = (Body::new(form), Vec::new(), 0);
            while at < file.len() && !body.ended() {
                let end = (at + 1 + draws.below(60) as usize).min(file.len());
                let used = body.feed(&file[at..end], &mut out).expect("bytes of a file are any bytes");
                assert!(used <= end - at);
                at = end;
            }
            assert!(out.len() <= file.len() && file.starts_with(&out), "bytes are passed on as they came");
            if let Form::Length(length) = form {
                assert_eq!(body.ended(), out.len() as u64 == length);
            }
            let _ = RdbFormat::of(&out);
        },
    );
}

#[test]
fn streams() {
    let seeds = [
        "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$2\r\n\r\n\r\n*1\r\n$5\r\nMULTI\r\n*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n*1\r\n$4\r\nEXEC\r\n",
        "*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n",
        "PING\r\n\n*1\r\n$4\r\nPING\r\n",
        "*0\r\n",
    ];
    fuzz("streams", &seeds, |message, draws| {
        let whole = Framer::new().feed(message);
        let (mut framer, mut at, mut last) = (Framer::new(), 0, None);
        let mut in_pieces = Ok(());
        while at < message.len() {
            let end = (at + 1 + draws.below(30) as usize).min(message.len());
            match framer.feed(&message[at..end]) {
                Ok(progress) => last = progress.boundary.map(|boundary| at + boundary).or(last),
                Err(error) => {
                    in_pieces = Err(error);
                    break;
                }
            }
            at = end;
        }
        match whole {
            Ok(progress) => assert_eq!((progress.boundary, in_pieces), (last, Ok(()))),
            Err(error) => assert_eq!(in_pieces, Err(error)),
        }
    });
}

#[test]
fn topologies_and_plans() {
    let nodes = format!(
        "{ID} 127.0.0.1:7000@17000,name myself,master - 0 0 1 connected 0-5460 7000 [77->-{ID}]\n\
         {ID} :0@0 master,noaddr - 0 0 1 disconnected\n"
    );
    let endpoints = [("a".to_string(), "h:1".to_string(), 2.0), ("b".to_string(), "h:2".to_string(), 1.0)];
    let plan = SlotPlan::new(&endpoints).expect("a plan").text();
    fuzz("topologies and plans", &[&nodes, &plan], |message, _| {
        let text = String::from_utf8_lossy(message);
        if let Ok(nodes) = topology::parse("here", &text) {
            assert!(nodes.len() <= text.lines().count());
        }
        if let Ok(plan) = SlotPlan::parse(&text) {
            assert_eq!(SlotPlan::parse(&plan.text()).expect("what is written is read"), plan);
        }
    });
}
