//! What is drawn, against what the distributions say.

use offpath_workload::*;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

const DRAWS: u64 = 1_000_000;

fn workload(text: &str) -> Workload {
    Workload::parse(text, "test").unwrap()
}

fn random(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// Five standard deviations of a share estimated from so many draws.
fn tolerance(share: f64) -> f64 {
    5.0 * (share * (1.0 - share) / DRAWS as f64).sqrt() + 5.0 / DRAWS as f64
}

fn assert_share(drawn: u64, share: f64, what: &str) {
    let drawn = drawn as f64 / DRAWS as f64;
    assert!((drawn - share).abs() <= tolerance(share), "{what}: drawn {drawn}, computed {share}");
}

#[test]
fn the_hash_is_that_of_ycsb() {
    // From YCSB's Utils.fnvhash64, run on these numbers.
    assert_eq!(fnv_hash_64(0), 6_284_781_860_667_377_211);
    assert_eq!(fnv_hash_64(1), 8_517_097_267_634_966_620);
}

#[test]
fn operations_come_in_their_proportions() {
    let workload = workload(
        "recordcount=9\noperationcount=9\nreadproportion=4\nupdateproportion=3\ninsertproportion=0\n\
         scanproportion=2\nreadmodifywriteproportion=1",
    );
    let (chooser, mut random) = (OperationChooser::new(&workload), random(1));
    let mut counts = [0u64; 5];
    for _ in 0..DRAWS {
        counts[chooser.next(&mut random) as usize] += 1;
    }
    for operation in ClientOperation::ALL {
        assert_share(counts[operation as usize], workload.mix.share(operation), operation.name());
    }
    assert_eq!(counts[ClientOperation::Insert as usize], 0);
}

#[test]
fn the_same_seed_draws_the_same() {
    for distribution in ["uniform", "zipfian", "latest", "hotspot", "sequential", "exponential"] {
        let workload = workload(&format!("recordcount=1000\nrequestdistribution={distribution}"));
        let draw = |seed| {
            let (mut keys, mut random) = (KeyChooser::new(&workload), random(seed));
            (0..200).map(|_| keys.next(&mut random)).collect::<Vec<u64>>()
        };
        assert_eq!(draw(3), draw(3), "{distribution}");
        assert!(distribution == "sequential" || draw(3) != draw(4), "{distribution}");
        assert!(draw(3).iter().all(|&key| key < 1000), "{distribution}");
    }
}

#[test]
fn first_draws_stay_what_they_are() {
    let workload = workload("recordcount=1000000\nrequestdistribution=zipfian");
    let (mut keys, mut random) = (KeyChooser::new(&workload), random(42));
    let drawn: Vec<u64> = (0..6).map(|_| keys.next(&mut random)).collect();
    assert_eq!(drawn, [494_184, 612_661, 195_880, 699_486, 677_768, 80_613]);
}

/// Chi-square of Gray's ranks against the shares stated for them.
#[test]
fn zipfian_ranks_have_the_stated_shares() {
    let (zipfian, mut random) = (Zipfian::new(200), random(5));
    let mut counts = [0u64; 200];
    for _ in 0..DRAWS {
        counts[zipfian.next(&mut random) as usize] += 1;
    }
    let chi_square: f64 = (0..200u64)
        .map(|rank| {
            let expected = zipfian.share_of_rank(rank) * DRAWS as f64;
            (counts[rank as usize] as f64 - expected).powi(2) / expected
        })
        .sum();
    // 199 degrees of freedom: mean 199, standard deviation 20.
    assert!(chi_square < 300.0, "{chi_square}");
}

#[test]
fn scan_and_field_lengths_have_their_means_and_bounds() {
    for distribution in ["uniform", "zipfian"] {
        let workload = workload(&format!(
            "recordcount=9\nminscanlength=5\nmaxscanlength=104\nscanlengthdistribution={distribution}\n\
             minfieldlength=5\nfieldlength=104\nfieldlengthdistribution={distribution}"
        ));
        let (scans, fields, mut random) =
            (ScanLengthChooser::new(&workload), FieldLengthChooser::new(&workload), random(6));
        let (mut sum, mut field_sum) = (0, 0);
        for _ in 0..DRAWS {
            let length = scans.next(&mut random);
            assert!((5..=104).contains(&length));
            sum += length;
            field_sum += fields.next(&mut random);
        }
        // Lengths deviate by at most 50, so the mean of a million by 0.05.
        assert!((sum as f64 / DRAWS as f64 - scans.mean()).abs() < 0.25, "{distribution}");
        assert!((field_sum as f64 / DRAWS as f64 - fields.mean_bytes()).abs() < 0.25, "{distribution}");
    }
}

/// The records in order of popularity, where the order follows from the distribution's definition.
fn popularity_rank(distribution: &str, record_count: u64, key: u64) -> u64 {
    match distribution {
        "latest" | "exponential" => record_count - 1 - key,
        _ => key,
    }
}

/// The hottest records get what the hottest get by the distribution itself, and each is named once.
#[test]
fn the_hottest_records_are_those_that_are_drawn_most() {
    for more in ["", "insertstart=1000\ninsertcount=8000\n"] {
        for distribution in ["uniform", "zipfian", "latest", "hotspot", "exponential"] {
            let text = format!("recordcount=10000\n{more}requestdistribution={distribution}");
            let workload = workload(&text);
            let popularity = Popularity::new(&workload);
            let (mut keys, mut random) = (KeyChooser::new(&workload), random(8));
            let mut counts = vec![0u64; 10_000];
            for _ in 0..DRAWS {
                counts[keys.next(&mut random) as usize] += 1;
            }
            for top in [1, 10, 1000, 4000] {
                let hottest = workload.hottest_records(top);
                let drawn: u64 = hottest.iter().map(|key| counts[*key as usize]).sum();
                // `share_of_top` is right within a thousandth.
                let (drawn, share) = (drawn as f64 / DRAWS as f64, popularity.share_of_top(top));
                let what = format!("top {top} of {text}");
                assert!((drawn - share).abs() <= tolerance(share) + 1e-3, "{what}: {drawn}, {share}");
            }
            let mut all = workload.hottest_records(20_000);
            all.sort_unstable();
            assert_eq!(all, (0..10_000).collect::<Vec<u64>>(), "{text}");
        }
    }
}

#[test]
fn popularity_agrees_with_draws() {
    for distribution in ["uniform", "latest", "hotspot", "sequential", "exponential"] {
        for record_count in [10_000, 100_000, 1_000_000, 10_000_000] {
            let workload =
                workload(&format!("recordcount={record_count}\nrequestdistribution={distribution}"));
            let popularity = Popularity::new(&workload);
            let (mut keys, mut random) = (KeyChooser::new(&workload), random(record_count));
            let tops = [1, 10, record_count / 100, record_count / 10, record_count / 2, record_count - 1];
            let mut counts = [0u64; 6];
            // A sequence of fewer than one round has seen only its first records.
            let sequence = distribution == "sequential" && record_count > DRAWS;
            for _ in 0..DRAWS {
                let rank = popularity_rank(distribution, record_count, keys.next(&mut random));
                for (count, top) in counts.iter_mut().zip(tops) {
                    *count += u64::from(rank < top);
                }
            }
            for (count, top) in counts.into_iter().zip(tops).filter(|_| !sequence) {
                let what = format!("top {top} of {record_count} {distribution}");
                assert_share(count, popularity.share_of_top(top), &what);
            }
        }
    }
}

/// The masses of all records, the ranks up to `hashed` found one by one and the rest uniform.
fn enumerated(record_count: u64, key_space: u64, hashed: u64) -> Vec<f64> {
    let ranks = Zipfian::scrambled_ranks();
    let rest = (1.0 - ranks.share_of_top(hashed)) / key_space as f64;
    let mut masses = vec![rest; record_count as usize];
    for rank in 0..hashed {
        let key = fnv_hash_64(rank) % key_space;
        if key < record_count {
            masses[key as usize] += ranks.share_of_rank(rank);
        }
    }
    let total: f64 = masses.iter().sum();
    masses.iter_mut().for_each(|mass| *mass /= total);
    masses
}

/// Draws that go to the records which enumeration finds most popular, against the computed share.
fn scrambled_agrees_with_draws(record_count: u64, hashed: u64, tops: &[u64]) {
    let workload = workload(&format!("recordcount={record_count}\nrequestdistribution=zipfian"));
    let popularity = Popularity::new(&workload);
    let masses = enumerated(record_count, record_count + 1, hashed);
    let mut order: Vec<u32> = (0..record_count as u32).collect();
    order.sort_unstable_by(|&left, &right| masses[right as usize].total_cmp(&masses[left as usize]));
    let mut rank_of = vec![0u32; record_count as usize];
    for (rank, &key) in order.iter().enumerate() {
        rank_of[key as usize] = rank as u32;
    }
    let (mut keys, mut random) = (KeyChooser::new(&workload), random(record_count));
    let mut counts = vec![0u64; tops.len()];
    for _ in 0..DRAWS {
        let rank = u64::from(rank_of[keys.next(&mut random) as usize]);
        for (count, &top) in counts.iter_mut().zip(tops) {
            *count += u64::from(rank < top);
        }
    }
    for (count, &top) in counts.into_iter().zip(tops) {
        let exact: f64 = order[..top as usize].iter().map(|&key| masses[key as usize]).sum();
        let computed = popularity.share_of_top(top);
        println!("top {top} of {record_count}: computed {computed:.5}, enumerated {exact:.5}, drawn {count}");
        assert_share(count, computed, &format!("top {top} of {record_count} zipfian"));
    }
}

#[test]
fn scrambled_popularity_agrees_with_draws() {
    scrambled_agrees_with_draws(10_000, 1 << 21, &[1, 10, 100, 1000, 5000, 9999]);
    scrambled_agrees_with_draws(100_000, 1 << 22, &[1, 10, 1000, 10_000, 50_000]);
    scrambled_agrees_with_draws(1_000_000, 1 << 23, &[1, 10, 10_000, 100_000, 300_000]);
    scrambled_agrees_with_draws(10_000_000, 1 << 22, &[1, 10, 1000, 10_000, 100_000]);
}

#[test]
fn popularity_is_consistent_with_itself() {
    for distribution in ["uniform", "zipfian", "latest", "hotspot", "sequential", "exponential"] {
        for record_count in [1u64, 2, 3, 7, 1000, 1_000_000_000] {
            if distribution == "hotspot" && record_count < 5 {
                continue;
            }
            let workload =
                workload(&format!("recordcount={record_count}\nrequestdistribution={distribution}"));
            let popularity = Popularity::new(&workload);
            let what = format!("{record_count} {distribution}");
            assert_eq!((popularity.share_of_top(0), popularity.share_of_top(u64::MAX)), (0.0, 1.0), "{what}");
            let (mut before, mut before_share) = (0.0, f64::INFINITY);
            for step in 0..=100 {
                let count = record_count * step / 100;
                let top = popularity.share_of_top(count);
                assert!((before..=1.0).contains(&top), "{what}");
                before = top;
                if count < record_count {
                    let share = popularity.share_of_rank(count);
                    assert!(share <= before_share * (1.0 + 1e-3) + 1e-12, "{what} rank {count}");
                    before_share = share;
                    let records = popularity.records_for_share(top);
                    assert!(records <= count && popularity.share_of_top(records) >= top - 1e-9, "{what}");
                }
            }
            if record_count <= 1000 {
                let sum: f64 = (0..record_count).map(|rank| popularity.share_of_rank(rank)).sum();
                assert!((sum - 1.0).abs() < 1e-9, "{what}: {sum}");
            }
            assert_eq!(popularity.share_of_rank(record_count), 0.0, "{what}");
        }
    }
}

#[test]
fn inserts_become_popular_and_room_for_them_is_left() {
    let mut latest = KeyChooser::new(&workload("recordcount=10\nrequestdistribution=latest"));
    let mut random = random(8);
    assert_eq!(latest.insert(), 10);
    let drawn: Vec<u64> = (0..10_000).map(|_| latest.next(&mut random)).collect();
    let most = drawn.iter().filter(|&&key| key == 10).count();
    assert!(most > 2_500 && drawn.iter().all(|key| (1..=10).contains(key)), "{most}");

    let inserting = workload(
        "recordcount=1000\noperationcount=1000\nrequestdistribution=zipfian\nreadproportion=0\n\
         updateproportion=0.5\ninsertproportion=0.5",
    );
    let mut keys = KeyChooser::new(&inserting);
    assert!((0..10_000).all(|_| keys.next(&mut random) < 1000));
    for _ in 0..1000 {
        keys.insert();
    }
    assert!((0..10_000).any(|_| keys.next(&mut random) >= 1000));
}

#[test]
fn clients_keep_to_their_part() {
    let part = "recordcount=1000\ninsertstart=400\ninsertcount=100\nrequestdistribution=";
    for distribution in ["uniform", "zipfian", "hotspot", "sequential"] {
        let workload = workload(&format!("{part}{distribution}"));
        let (mut keys, mut random) = (KeyChooser::new(&workload), random(9));
        let last = if distribution == "zipfian" { 500 } else { 499 };
        assert!((0..10_000).all(|_| (400..=last).contains(&keys.next(&mut random))), "{distribution}");
        assert!((Popularity::new(&workload).share_of_top(101) - 1.0).abs() < 1e-9, "{distribution}");
    }
}
