//! Every unit and every conversion, with values that were worked out by hand.

use offpath_quantity::{
    BitRate, Bytes, Dimension, Frequency, OpRate, PS_PER_SECOND, ParseError, Quantity, Time,
};

const ALL: [Dimension; 7] = [
    Dimension::Time,
    Dimension::Bytes,
    Dimension::BitRate,
    Dimension::OpRate,
    Dimension::Frequency,
    Dimension::Ratio,
    Dimension::Count,
];

/// Whether `action` panics with these words.
fn panics(words: &str, action: impl FnOnce() + std::panic::UnwindSafe) {
    let caught = std::panic::catch_unwind(action).expect_err(words);
    let text = caught.downcast_ref::<String>().cloned();
    let text = text.or(caught.downcast_ref::<&str>().map(|text| text.to_string())).unwrap_or_default();
    assert!(text.contains(words), "{text}");
}

#[test]
fn every_unit_has_its_size() {
    for (text, base) in [
        ("7 ps", 7.0),
        ("7 ns", 7e3),
        ("7 us", 7e6),
        ("7 ms", 7e9),
        ("7 s", 7e12),
        ("0.25 ns", 250.0),
        ("1_000 ps", 1000.0),
        ("2e3 ns", 2e6),
        ("2.5E-1 us", 250e3),
        (" +3ns ", 3e3),
    ] {
        assert_eq!(text.parse::<Time>().unwrap().ps() as f64, base, "{text}");
    }
    for (text, count) in [
        ("3 B", 3),
        ("3 kB", 3_000),
        ("3 MB", 3_000_000),
        ("3 GB", 3_000_000_000),
        ("3 TB", 3_000_000_000_000),
        ("3 KiB", 3 << 10),
        ("3 MiB", 3 << 20),
        ("3 GiB", 3 << 30),
        ("3 TiB", 3 << 40),
    ] {
        assert_eq!(text.parse::<Bytes>().unwrap().get(), count, "{text}");
    }
    for (text, rate) in [
        ("5 bit/s", 5),
        ("5 kbit/s", 5_000),
        ("5 Mbit/s", 5_000_000),
        ("5 Gbit/s", 5_000_000_000),
        ("5 Tbit/s", 5_000_000_000_000),
        ("5 MB/s", 40_000_000),
        ("5 GB/s", 40_000_000_000),
    ] {
        assert_eq!(text.parse::<BitRate>().unwrap().bits_per_second(), rate, "{text}");
    }
    for (text, rate) in [("5 /s", 5), ("5 k/s", 5_000), ("5 M/s", 5_000_000), ("5 G/s", 5_000_000_000)] {
        assert_eq!(text.parse::<OpRate>().unwrap().get(), rate, "{text}");
    }
    for (text, hz) in [("5 Hz", 5), ("5 kHz", 5_000), ("5 MHz", 5_000_000), ("2.75 GHz", 2_750_000_000)] {
        assert_eq!(text.parse::<Frequency>().unwrap().hz(), hz, "{text}");
    }
    assert_eq!(Quantity::parse("0.5", Dimension::Ratio), Ok(Quantity::Ratio(0.5)));
    assert_eq!(Quantity::parse("8", Dimension::Count), Ok(Quantity::Count(8)));
}

#[test]
fn every_dimension_has_a_name_and_an_example_that_it_reads() {
    let names: Vec<String> = ALL.iter().map(Dimension::to_string).collect();
    assert_eq!(names, ["time", "bytes", "bit rate", "operation rate", "frequency", "ratio", "count"]);
    for dimension in ALL {
        let read = Quantity::parse(dimension.example(), dimension).unwrap();
        assert_eq!(read.dimension(), dimension);
        assert_eq!(read.to_string(), dimension.example(), "it is printed as it is written");
        assert_eq!(Quantity::from_base(read.base(), dimension), Some(read));
    }
    let bases: Vec<f64> =
        ALL.iter().map(|&one| Quantity::parse(one.example(), one).unwrap().base()).collect();
    assert_eq!(bases, [300e3, 512.0, 200e9, 29e6, 2.75e9, 0.5, 8.0]);
}

#[test]
fn what_is_no_quantity_is_told_apart() {
    let error = |text: &str, dimension| Quantity::parse(text, dimension).unwrap_err();
    for dimension in ALL {
        assert!(matches!(error("", dimension), ParseError::NoNumber { .. }), "{dimension}");
        assert!(matches!(error("ns", dimension), ParseError::NoNumber { .. }), "{dimension}");
        assert!(matches!(error("1.2.3 ns", dimension), ParseError::NoNumber { .. }), "{dimension}");
        let odd = error("3 furlongs", dimension);
        assert_eq!(odd, ParseError::UnknownUnit { unit: "furlongs".into(), dimension });
    }
    // An exponent without digits is the begin of a unit.
    assert_eq!(
        error("1 EiB", Dimension::Bytes),
        ParseError::UnknownUnit { unit: "EiB".into(), dimension: Dimension::Bytes }
    );
    assert_eq!(
        error("1e+ns", Dimension::Time),
        ParseError::UnknownUnit { unit: "e+ns".into(), dimension: Dimension::Time }
    );
    assert_eq!("9e6 s".parse::<Time>(), Ok(Time::from_ps(9_000_000_000_000_000_000)));
    let refused = error("9000001 s", Dimension::Time).to_string();
    assert_eq!(refused, "`9000001 s` is outside the range of time: from 0 to 9000000 s");
    let refused = error("-1 B", Dimension::Bytes).to_string();
    assert!(refused.contains("`-1 B` is negative; write 0 or more"), "{refused}");
}

#[test]
fn numbers_are_taken_within_their_range_and_rounded() {
    for dimension in ALL {
        let taken = |value| Quantity::from_base(value, dimension).is_some();
        assert!(taken(0.0) && taken(9e18), "{dimension}");
        let beyond = [-1.0, 9.1e18, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        assert!(!beyond.into_iter().any(taken), "{dimension}");
    }
    assert_eq!(Quantity::from_base(2.5, Dimension::Time), Some(Quantity::Time(Time::from_ps(3))));
    assert_eq!(Quantity::from_base(2.4, Dimension::Bytes), Some(Quantity::Bytes(Bytes::new(2))));
    assert_eq!(Quantity::from_base(2.4, Dimension::Ratio), Some(Quantity::Ratio(2.4)));
    assert_eq!(Quantity::from_base(2.4, Dimension::Count), None);
}

#[test]
fn times_convert_and_add_exactly() {
    let time = Time::from_ps(1_500_000);
    assert_eq!((time.as_ns(), time.as_us(), time.as_seconds()), (1500.0, 1.5, 1.5e-6));
    assert_eq!(Time::from_ns(3), Time::from_ps(3_000));
    assert_eq!(Time::from_us(3), Time::from_ps(3_000_000));
    assert_eq!(Time::from_ms(3), Time::from_ps(3_000_000_000));
    assert_eq!(PS_PER_SECOND, Time::from_ms(1000).ps());
    let (two, five) = (Time::from_ps(2), Time::from_ps(5));
    assert_eq!((two + five, five - two), (Time::from_ps(7), Time::from_ps(3)));
    assert_eq!((five.saturating_sub(two), two.saturating_sub(five)), (Time::from_ps(3), Time::ZERO));
    assert_eq!(two.checked_add(five), Some(Time::from_ps(7)));
    assert_eq!(Time::MAX.checked_add(Time::from_ps(1)), None);
    assert_eq!(Time::MAX.checked_add(Time::ZERO), Some(Time::MAX));
    assert_eq!((five.times(3), five.times(0)), (Time::from_ps(15), Time::ZERO));
    assert_eq!((five.scaled(0.5), five.scaled(0.29)), (Time::from_ps(3), Time::from_ps(1)));
    assert_eq!([two, five, two].into_iter().sum::<Time>(), Time::from_ps(9));
    let mut sum = two;
    sum += five;
    sum += five;
    assert_eq!(sum, Time::from_ps(12));
    sum -= two;
    assert_eq!(sum, Time::from_ps(10));
    panics("time within 213 days", || assert!(Time::MAX + Time::from_ps(1) > Time::ZERO));
    panics("time within 213 days", || assert!(Time::MAX.times(2) > Time::ZERO));
    panics("the earlier time is subtracted", || assert!(Time::ZERO - Time::from_ps(1) > Time::ZERO));
}

#[test]
fn bytes_rates_and_frequencies_take_their_time() {
    assert_eq!(Bytes::new(2) + Bytes::new(3), Bytes::new(5));
    let mut sum = Bytes::ZERO;
    sum += Bytes::new(7);
    assert_eq!(sum.get(), 7);
    panics("bytes within 16 EiB", || assert!(Bytes::new(u64::MAX) + Bytes::new(1) > Bytes::ZERO));
    let packets = |bytes| Bytes::new(bytes).packets(Bytes::new(512));
    assert_eq!([0, 1, 511, 512, 513, 1024, 1025].map(packets), [0, 1, 1, 1, 2, 2, 3]);
    // 3 B at 7 bit/s take 24/7 s, rounded up.
    let rate = BitRate::from_bits_per_second(7);
    assert_eq!(rate.time_for(Bytes::new(3)), Time::from_ps(3_428_571_428_572));
    assert_eq!(rate.time_for(Bytes::ZERO), Time::ZERO);
    assert_eq!(BitRate::from_bits_per_second(8_000_000_000).time_for(Bytes::new(1)), Time::from_ns(1));
    assert_eq!(BitRate::from_bits_per_second(2_500_000_000).as_gbit_per_s(), 2.5);
    assert_eq!(OpRate::per_second(2_500_000).as_million_per_s(), 2.5);
    // To the nearest: 1e12 / 3 is 333333333333.3, 1e12 / 7 is 142857142857.14, 1e12 / 1.5e12 is 0.67.
    assert_eq!(OpRate::per_second(3).interval(), Time::from_ps(333_333_333_333));
    assert_eq!(OpRate::per_second(1_500_000_000_000).interval(), Time::from_ps(1));
    assert_eq!(OpRate::per_second(1_700_000_000_000).interval(), Time::from_ps(1));
    assert_eq!(OpRate::per_second(2_500_000_000_000).interval(), Time::ZERO);
    let frequency = Frequency::from_hz(3_000_000_000);
    assert_eq!([0, 1, 2, 3].map(|n| frequency.time_for_cycles(n).ps()), [0, 333, 667, 1000]);
}

#[test]
fn values_are_printed_in_the_largest_unit_that_leaves_one() {
    for (ps, text) in [
        (0, "0 ps"),
        (999, "999 ps"),
        (1_000, "1 ns"),
        (1_001, "1.001 ns"),
        (999_999, "999.999 ns"),
        (1_000_000, "1 us"),
        (999_999_000, "999.999 us"),
        (1_000_000_000, "1 ms"),
        (2_500_000_000, "2.5 ms"),
        (1_000_000_000_000, "1 s"),
        (120_000_000_000_000, "120 s"),
    ] {
        assert_eq!(Time::from_ps(ps).to_string(), text);
    }
    for (count, text) in [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1025, "1025 B"),
        (1280, "1.25 KiB"),
        (1536, "1.5 KiB"),
        (1 << 20, "1 MiB"),
        ((1 << 20) + 1024, "1025 KiB"),
        (9 << 20, "9 MiB"),
        (3 << 29, "1.5 GiB"),
        (1 << 40, "1024 GiB"),
    ] {
        assert_eq!(Bytes::new(count).to_string(), text);
    }
    let bits = |rate| BitRate::from_bits_per_second(rate).to_string();
    assert_eq!(
        [1, 1_500, 2_000_000, 200_000_000_000, 1_600_000_000_000].map(bits),
        ["1 bit/s", "1.5 kbit/s", "2 Mbit/s", "200 Gbit/s", "1.6 Tbit/s"]
    );
    assert_eq!(
        [1_000, 1_000_000, 1_000_000_000, 1_000_000_000_000].map(bits),
        ["1 kbit/s", "1 Mbit/s", "1 Gbit/s", "1 Tbit/s"]
    );
    let operations = |rate| OpRate::per_second(rate).to_string();
    assert_eq!([7, 7_000, 195_000_000, 2_000_000_000].map(operations), ["7 /s", "7 k/s", "195 M/s", "2 G/s"]);
    assert_eq!([1_000, 1_000_000, 1_000_000_000].map(operations), ["1 k/s", "1 M/s", "1 G/s"]);
    let hertz = |hz| Frequency::from_hz(hz).to_string();
    assert_eq!([7, 7_000, 7_500_000, 2_750_000_000].map(hertz), ["7 Hz", "7 kHz", "7.5 MHz", "2.75 GHz"]);
    assert_eq!([1_000, 1_000_000, 1_000_000_000].map(hertz), ["1 kHz", "1 MHz", "1 GHz"]);
    // Widths and sides are kept.
    assert_eq!(format!("[{:>8}]", Time::from_ns(3)), "[    3 ns]");
    assert_eq!(format!("[{:<5}]", Quantity::Count(3)), "[3    ]");
    assert_eq!(format!("[{:>5}]", Quantity::Ratio(0.5)), "[  0.5]");
}
