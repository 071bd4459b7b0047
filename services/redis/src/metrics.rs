//! Counters and gauges in Prometheus' text format, over a listener that knows `GET /metrics` alone.

use crate::relay::{LinkState, Relay};
use crate::replica::Phase;
use std::collections::VecDeque;
use std::fmt::Write;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::{sleep, timeout};

/// Requests that are answered at a time.
const AT_A_TIME: usize = 16;
/// Bytes of a request.
const REQUEST: usize = 8 << 10;

/// Answers requests for as long as the relay runs.
pub async fn serve(relay: Rc<Relay>, listener: TcpListener) {
    let mut open: VecDeque<JoinHandle<()>> = VecDeque::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                open.retain(|request| !request.is_finished());
                // Who has said nothing for longest keeps nobody out.
                if open.len() == AT_A_TIME
                    && let Some(oldest) = open.pop_front()
                {
                    oldest.abort();
                }
                let relay = relay.clone();
                open.push_back(spawn_local(async move {
                    // A client that is gone or slow is not a concern of the relay.
                    let _ = timeout(Duration::from_secs(5), answer(&relay, stream)).await;
                }));
            }
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn answer(relay: &Relay, mut stream: TcpStream) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|window| window == b"\r\n\r\n") {
        let mut piece = [0; 1024];
        let count = stream.read(&mut piece).await?;
        if count == 0 || request.len() + count > REQUEST {
            return Ok(());
        }
        request.extend_from_slice(&piece[..count]);
    }
    let (status, body) = if request.starts_with(b"GET /metrics ") {
        ("200 OK", text(relay))
    } else {
        ("404 Not Found", "only GET /metrics is here\n".to_string())
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

/// A value of the label syntax: backslash, quote and line feed are escaped.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// All metrics, in a fixed order.
pub fn text(relay: &Relay) -> String {
    let mut out = String::new();
    let mut metric = |name: &str, kind: &str, help: &str, values: &[(String, u64)]| {
        let _ = writeln!(out, "# HELP offpath_relay_{name} {help}\n# TYPE offpath_relay_{name} {kind}");
        for (labels, value) in values {
            let _ = writeln!(out, "offpath_relay_{name}{labels} {value}");
        }
    };
    let one = |value: u64| vec![(String::new(), value)];
    let current = relay.current.borrow();
    let published = current.backlog.published();
    metric(
        "up",
        "gauge",
        "1 while the stream of the master comes in.",
        &one(u64::from(current.link == LinkState::Up)),
    );
    metric(
        "held",
        "gauge",
        "1 while the master answers and no replica is there to follow it for.",
        &one(u64::from(current.link == LinkState::Held)),
    );
    metric("master_offset", "gauge", "Offset of the last byte that replicas may have.", &one(published - 1));
    metric("acknowledged_offset", "gauge", "Offset that the master was told.", &one(current.acknowledged));
    metric(
        "master_silence_seconds",
        "gauge",
        "Seconds since the master was heard.",
        &one(current.heard.elapsed().as_secs()),
    );
    metric(
        "backlog_bytes",
        "gauge",
        "Bytes of the stream that are kept in memory.",
        &one(current.backlog.end() - current.backlog.start()),
    );
    metric(
        "backlog_capacity_bytes",
        "gauge",
        "Bytes that are kept at most.",
        &one(current.backlog.capacity()),
    );
    metric(
        "spilled_bytes",
        "gauge",
        "Bytes of the stream that wait on disk for loading replicas.",
        &one(current.spill.as_ref().map_or(0, |spill| spill.length())),
    );
    metric(
        "spool_bytes",
        "gauge",
        "Bytes of the file that replicas can start from.",
        &one(current.spool.as_ref().map_or(0, |spool| spool.stage().1)),
    );
    let open = current.open() + current.replicas.len();
    metric("connections", "gauge", "Open connections.", &one(open as u64));
    for (name, phase) in [("waiting", Phase::Waiting), ("loading", Phase::Loading), ("online", Phase::Online)]
    {
        let count = current.replicas.values().filter(|replica| replica.phase.get() == phase).count();
        metric(&format!("replicas_{name}"), "gauge", "Replicas in this phase.", &one(count as u64));
    }
    metric(
        "replicas_living",
        "gauge",
        "Replicas that acknowledged, or load and said that they live, within two seconds.",
        &one(relay.living(&current) as u64),
    );
    // 0 stands for what was received.
    let quorum = relay.settings().config.acknowledge.quorum().unwrap_or(0);
    metric(
        "quorum",
        "gauge",
        "Living replicas that have to have what the master is told.",
        &one(quorum as u64),
    );
    let label = |replica: &crate::replica::Replica, more: &str| {
        let (address, port, number) = (escaped(&replica.address), replica.port, replica.number);
        format!("{{replica=\"{address}:{port}\",connection=\"{number}\"{more}}}")
    };
    let labelled = |value: fn(&crate::replica::Replica, u64) -> u64| -> Vec<(String, u64)> {
        current.replicas.values().map(|replica| (label(replica, ""), value(replica, published))).collect()
    };
    // One that still waits for the stream or a file has no place in the stream yet.
    let placed = |value: fn(&crate::replica::Replica, u64) -> u64| -> Vec<(String, u64)> {
        let placed = current.replicas.values().filter(|replica| replica.phase.get() != Phase::Waiting);
        placed.map(|replica| (label(replica, ""), value(replica, published))).collect()
    };
    metric(
        "replica_behind_bytes",
        "gauge",
        "Bytes of the stream that the replica had not acknowledged when it was heard last.",
        &placed(|replica, published| published.saturating_sub(replica.has_up_to())),
    );
    metric(
        "replica_unsent_bytes",
        "gauge",
        "Bytes of the stream that were not sent to the replica, which `limits.replica_behind` bounds.",
        &placed(|replica, published| published.saturating_sub(replica.next.get())),
    );
    metric(
        "replica_silence_seconds",
        "gauge",
        "Seconds since the replica said anything.",
        &labelled(|replica, _| replica.heard.get().elapsed().as_secs()),
    );
    metric(
        "replica_acknowledged_offset",
        "gauge",
        "Offset that the replica acknowledged.",
        &labelled(|replica, _| replica.acknowledged.get()),
    );
    let replicas = current.replicas.values().map(|replica| {
        let phase = match replica.phase.get() {
            Phase::Waiting => "waiting",
            Phase::Loading => "loading",
            Phase::Online => "online",
        };
        let label = label(replica, &format!(",phase=\"{phase}\",acknowledges=\"{}\"", replica.acknowledges));
        (label, 1)
    });
    metric("replica_phase", "gauge", "1 in the phase that the replica is in.", &replicas.collect::<Vec<_>>());
    for (name, help, counter) in relay.counters.all() {
        metric(name, "counter", help, &one(counter.get()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::relay::Relay;
    use crate::relay::tests::{replica, replica_that, take};
    use std::collections::BTreeSet;

    /// Connections that say nothing keep nobody from the figures.
    #[tokio::test]
    async fn who_says_nothing_makes_room_for_who_asks() {
        let relay = Relay::new(Config::of("127.0.0.1:6379", "127.0.0.1:0")).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let all = tokio::task::LocalSet::new();
        all.spawn_local(serve(relay, listener));
        let asked = all.run_until(async {
            let mut idle = Vec::new();
            for _ in 0..3 * AT_A_TIME {
                idle.push(TcpStream::connect(address).await.unwrap());
            }
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").await.unwrap();
            let mut page = String::new();
            stream.read_to_string(&mut page).await.map(|_| page)
        });
        let page = asked.await.unwrap();
        assert!(page.starts_with("HTTP/1.1 200") && page.contains("offpath_relay_up 0"), "{page}");
    }

    /// Two counters that are taken for each other would go unseen where each is nothing.
    #[test]
    fn each_counter_stands_under_its_own_name() {
        let relay = Relay::new(Config::of("127.0.0.1:6379", "127.0.0.1:0")).unwrap();
        let counters = &relay.counters;
        let all = [
            ("stream_received_bytes_total", &counters.stream_bytes_in),
            ("stream_sent_bytes_total", &counters.stream_bytes_out),
            ("file_received_bytes_total", &counters.file_bytes_in),
            ("file_sent_bytes_total", &counters.file_bytes_out),
            ("commands_total", &counters.commands),
            ("master_full_total", &counters.master_full),
            ("master_files_total", &counters.master_files),
            ("spool_failures_total", &counters.spool_failures),
            ("file_failures_total", &counters.file_failures),
            ("state_failures_total", &counters.state_failures),
            ("master_partial_total", &counters.master_partial),
            ("links_begun_anew_total", &counters.taken_back),
            ("replica_full_total", &counters.replica_full),
            ("own_files_total", &counters.own_files),
            ("replica_partial_total", &counters.replica_partial),
            ("replicas_dropped_total", &counters.dropped_slow),
            ("refused_total", &counters.refused),
            ("connections_total", &counters.connections),
        ];
        assert_eq!(all.len(), counters.all().len());
        for (power, (_, counter)) in all.iter().enumerate() {
            counter.set(1 << power);
        }
        let page = text(&relay);
        for (power, (name, _)) in all.iter().enumerate() {
            let line = format!("\noffpath_relay_{name} {}\n", 1 << power);
            assert!(page.contains(&line), "{line}: {page}");
        }
    }

    #[test]
    fn the_guide_has_every_metric_and_no_other() {
        let relay = Relay::new(Config::of("127.0.0.1:6379", "127.0.0.1:0")).unwrap();
        let page = text(&relay);
        let named = page.lines().filter_map(|line| line.strip_prefix("# TYPE offpath_relay_"));
        let there: BTreeSet<&str> = named.filter_map(|line| line.split(' ').next()).collect();
        let guide = include_str!("../../../docs/redis.md");
        let (_, table) =
            guide.split_once("(with `offpath_relay_` before it) | meaning |\n|---|---|\n").unwrap();
        let rows = table.lines().map_while(|line| line.strip_prefix("| "));
        let said: BTreeSet<&str> = rows
            .flat_map(|row| row.split(" |").next().unwrap().split(", ").map(|name| name.trim_matches('`')))
            .collect();
        assert_eq!(there, said);
    }

    #[test]
    fn what_a_replica_has_not_acknowledged_and_what_it_was_not_sent_are_two_things() {
        let relay = Relay::new(Config::of("127.0.0.1:6379", "127.0.0.1:0")).unwrap();
        take(&relay, 100, 101);
        // All of it is on its way to the first, which has said that it has 60 B.
        let first = replica(&relay, 1, Phase::Online);
        first.next.set(101);
        relay.acknowledged(&first, 60, None);
        // The second loads a file of offset 20 and was sent 30 B behind it.
        let second = replica(&relay, 2, Phase::Loading);
        second.given.set(Some(20));
        second.next.set(51);
        // The third never says anything, the fourth has no place yet, and the fifth is being sent a file of offset 90.
        replica_that(&relay, 3, Phase::Online, false).next.set(91);
        replica(&relay, 4, Phase::Waiting);
        replica(&relay, 5, Phase::Loading).next.set(91);
        let page = text(&relay);
        let values = |name: &str| -> Vec<(u64, u64)> {
            let lines = page.lines().filter_map(|line| line.strip_prefix(&format!("offpath_relay_{name}{{")));
            lines
                .map(|line| {
                    let (labels, value) = line.split_once("} ").unwrap();
                    let number = labels.split_once("connection=\"").unwrap().1.trim_end_matches('"');
                    (number.parse().unwrap(), value.parse().unwrap())
                })
                .collect()
        };
        assert_eq!(values("replica_behind_bytes"), [(1, 40), (2, 80), (3, 10), (5, 10)]);
        assert_eq!(values("replica_unsent_bytes"), [(1, 0), (2, 50), (3, 10), (5, 10)]);
    }
}
