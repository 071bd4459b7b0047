//! INFO and ROLE, with the names that Redis gives the same things.

use crate::relay::{LinkState, Relay};
use crate::replica::Phase;
use crate::resp::write_bulk;
use std::fmt::Write;

/// The host and the port of the master.
fn master(address: &str) -> (&str, &str) {
    let (host, port) = address.rsplit_once(':').unwrap_or((address, "0"));
    (host.trim_matches(['[', ']']), port)
}

/// The text of INFO with the sections that are asked for; none or `all` means every one.
pub fn text(relay: &Relay, sections: &[&str]) -> String {
    let every = ["all", "default", "everything"];
    let wants = |name: &str| {
        sections.is_empty()
            || sections.iter().any(|asked| {
                asked.eq_ignore_ascii_case(name) || every.iter().any(|all| asked.eq_ignore_ascii_case(all))
            })
    };
    let mut text = String::new();
    if wants("server") {
        server(relay, &mut text);
    }
    if wants("clients") {
        let _ = write!(
            text,
            "# Clients\r\nconnected_clients:{}\r\nmaxclients:{}\r\n\r\n",
            relay.current.borrow().open(),
            relay.settings().config.limits.connections
        );
    }
    if wants("stats") {
        stats(relay, &mut text);
    }
    if wants("replication") {
        replication(relay, &mut text);
    }
    text
}

/// The version of the master that the relay serves, or the relay's own before it knows one.
pub fn redis_version(relay: &Relay) -> String {
    let identity = &relay.current.borrow().identity;
    identity.redis_version.clone().unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_string())
}

// Writing to a string cannot fail, which is why results of `write!` are dropped here.
fn server(relay: &Relay, text: &mut String) {
    let valkey = relay.current.borrow().identity.valkey_version.clone();
    let valkey = valkey.map_or(String::new(), |version| format!("valkey_version:{version}\r\n"));
    let _ = write!(
        text,
        "# Server\r\nserver_name:offpath-relay\r\nrelay_version:{}\r\nredis_version:{}\r\n{valkey}\
         redis_mode:standalone\r\nprocess_id:{}\r\nrun_id:{}\r\ntcp_port:{}\r\nuptime_in_seconds:{}\r\n\r\n",
        env!("CARGO_PKG_VERSION"),
        redis_version(relay),
        std::process::id(),
        relay.run_id,
        relay.port.get(),
        relay.started.elapsed().as_secs()
    );
}

fn stats(relay: &Relay, text: &mut String) {
    let counters = &relay.counters;
    let _ = write!(
        text,
        "# Stats\r\ntotal_connections_received:{}\r\nrejected_connections:{}\r\n\
         total_net_repl_input_bytes:{}\r\ntotal_net_repl_output_bytes:{}\r\n\
         sync_full:{}\r\nsync_partial_ok:{}\r\nmaster_sync_full:{}\r\nmaster_sync_partial:{}\r\n\
         client_output_buffer_limit_disconnections:{}\r\n\r\n",
        counters.connections.get(),
        counters.refused.get(),
        counters.stream_bytes_in.get() + counters.file_bytes_in.get(),
        counters.stream_bytes_out.get() + counters.file_bytes_out.get(),
        counters.replica_full.get(),
        counters.replica_partial.get(),
        counters.master_full.get(),
        counters.master_partial.get(),
        counters.dropped_slow.get(),
    );
}

fn replication(relay: &Relay, text: &mut String) {
    let current = relay.current.borrow();
    let (host, port) = master(&current.master);
    let up = current.link == LinkState::Up;
    let offset = current.backlog.published().saturating_sub(1);
    let _ = write!(
        text,
        "# Replication\r\nrole:slave\r\nmaster_host:{host}\r\nmaster_port:{port}\r\n\
         master_link_status:{}\r\nmaster_last_io_seconds_ago:{}\r\nmaster_sync_in_progress:{}\r\n\
         slave_read_repl_offset:{}\r\nslave_repl_offset:{offset}\r\nrelay_link:{}\r\n",
        if up { "up" } else { "down" },
        if up { current.heard.elapsed().as_secs() as i64 } else { -1 },
        u8::from(current.link == LinkState::Synchronising),
        current.backlog.end().saturating_sub(1),
        match current.link {
            LinkState::Down => "down",
            LinkState::Held => "held",
            LinkState::Synchronising => "synchronising",
            LinkState::Up => "up",
        },
    );
    if let (LinkState::Down, Some(trouble)) = (current.link, &current.trouble) {
        let _ = write!(text, "relay_link_error:{}\r\n", on_a_line(trouble));
    }
    if let Some(no_file) = &current.no_file {
        let _ = write!(text, "relay_file_error:{}\r\n", on_a_line(&no_file.why));
    }
    let path = [std::slice::from_ref(&relay.run_id), &current.above].concat().join(",");
    let _ = write!(text, "relay_path:{path}\r\n");
    // Sentinel never promotes a replica of priority 0, and names one that is not announced to no client: a relay has no
    // data to serve.
    let _ = write!(
        text,
        "slave_priority:0\r\nslave_read_only:1\r\nreplica_announced:0\r\nconnected_slaves:{}\r\n",
        current.replicas.len()
    );
    if current.needs_replicas {
        // As the master says it, so that a relay that follows this one knows it too.
        let _ = write!(text, "min_slaves_good_slaves:{}\r\n", relay.living(&current));
    }
    for (index, replica) in current.replicas.values().enumerate() {
        let state = match replica.phase.get() {
            Phase::Waiting => "wait_bgsave",
            Phase::Loading => "send_bulk",
            Phase::Online => "online",
        };
        let _ = write!(
            text,
            "slave{index}:ip={},port={},state={state},offset={},lag={}\r\n",
            replica.address,
            replica.port,
            // What one says that loads is of no stream of this relay's.
            if replica.counts() { replica.acknowledged.get() } else { 0 },
            replica.lived.get().unwrap_or_else(|| replica.heard.get()).elapsed().as_secs()
        );
    }
    let id = current.id.unwrap_or(crate::history::ReplicationId::NONE);
    let second_offset = if current.second_offset == 0 { -1 } else { current.second_offset as i64 };
    let _ = write!(
        text,
        "master_failover_state:no-failover\r\nmaster_replid:{id}\r\nmaster_replid2:{}\r\n\
         master_repl_offset:{offset}\r\nsecond_repl_offset:{second_offset}\r\nrepl_backlog_active:1\r\n\
         repl_backlog_size:{}\r\nrepl_backlog_first_byte_offset:{}\r\nrepl_backlog_histlen:{}\r\n\
         relay_acknowledged_offset:{}\r\nrelay_living_replicas:{}\r\nrelay_quorum:{}\r\n\r\n",
        current.second_id,
        current.backlog.capacity(),
        current.backlog.start(),
        current.backlog.published() - current.backlog.start(),
        current.acknowledged,
        relay.living(&current),
        // 0 stands for what was received.
        relay.settings().config.acknowledge.quorum().unwrap_or(0),
    );
}

/// A reason as a field of INFO. A master's own words may be among it.
fn on_a_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The reply to ROLE of a replica.
pub fn role(relay: &Relay) -> Vec<u8> {
    let current = relay.current.borrow();
    let (host, port) = master(&current.master);
    let state = match current.link {
        LinkState::Down | LinkState::Held => "connect",
        LinkState::Synchronising => "sync",
        LinkState::Up => "connected",
    };
    let mut out = b"*5\r\n".to_vec();
    write_bulk(&mut out, b"slave");
    write_bulk(&mut out, host.as_bytes());
    out.extend_from_slice(format!(":{port}\r\n").as_bytes());
    write_bulk(&mut out, state.as_bytes());
    out.extend_from_slice(format!(":{}\r\n", current.backlog.published().saturating_sub(1)).as_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Acknowledge, Config};
    use crate::history::ReplicationId;

    const ID: &str = "0123456789abcdef0123456789abcdef01234567";

    /// The fields of a section.
    fn fields(text: &str) -> Vec<&str> {
        text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
    }

    #[test]
    fn every_number_stands_under_its_own_name() {
        let mut config = Config::of("[::1]:6380", "127.0.0.1:0");
        config.acknowledge = Acknowledge::replicas(3);
        let relay = Relay::new(config).expect("the configuration is in order");
        let counters = &relay.counters;
        let all = [
            &counters.connections,
            &counters.refused,
            &counters.stream_bytes_in,
            &counters.file_bytes_in,
            &counters.stream_bytes_out,
            &counters.file_bytes_out,
            &counters.replica_full,
            &counters.replica_partial,
            &counters.master_full,
            &counters.master_partial,
            &counters.dropped_slow,
        ];
        for (index, counter) in all.into_iter().enumerate() {
            counter.set(1 << index);
        }
        assert_eq!(
            fields(&text(&relay, &["STATS"])),
            [
                "total_connections_received:1",
                "rejected_connections:2",
                "total_net_repl_input_bytes:12",
                "total_net_repl_output_bytes:48",
                "sync_full:64",
                "sync_partial_ok:128",
                "master_sync_full:256",
                "master_sync_partial:512",
                "client_output_buffer_limit_disconnections:1024",
            ]
        );
        {
            let mut current = relay.current.borrow_mut();
            current.link = LinkState::Synchronising;
            current.backlog.reset(101);
            current.backlog.room().extend([b'x'; 50]);
            current.backlog.received();
            current.backlog.publish(141);
            current.acknowledged = 120;
        }
        let told = text(&relay, &["replication"]);
        let offset_and_id = format!("master_replid:{}", "0".repeat(40));
        for line in [
            "role:slave",
            "master_host:::1",
            "master_port:6380",
            "master_link_status:down",
            "master_last_io_seconds_ago:-1",
            "master_sync_in_progress:1",
            "slave_read_repl_offset:150",
            "slave_repl_offset:140",
            "connected_slaves:0",
            &offset_and_id,
            "master_repl_offset:140",
            "second_repl_offset:-1",
            "repl_backlog_size:67108864",
            "repl_backlog_first_byte_offset:101",
            "repl_backlog_histlen:40",
            "relay_acknowledged_offset:120",
            "relay_quorum:3",
        ] {
            assert!(fields(&told).contains(&line), "{line} is missing: {told}");
        }
        assert_eq!(role(&relay), b"*5\r\n$5\r\nslave\r\n$3\r\n::1\r\n:6380\r\n$4\r\nsync\r\n:140\r\n");
        {
            let mut current = relay.current.borrow_mut();
            current.link = LinkState::Up;
            current.id = Some(ID.parse::<ReplicationId>().expect("an id"));
            (current.second_id, current.second_offset) = (ID.parse().expect("an id"), 77);
            assert!(!told.contains("min_slaves"), "the master takes writes without a replica: {told}");
            current.needs_replicas = true;
        }
        let told = text(&relay, &["replication"]);
        for line in [
            "master_link_status:up",
            "master_last_io_seconds_ago:0",
            "master_sync_in_progress:0",
            &format!("master_replid:{ID}"),
            &format!("master_replid2:{ID}"),
            "second_repl_offset:77",
            "min_slaves_good_slaves:0",
        ] {
            assert!(fields(&told).contains(&line), "{line} is missing: {told}");
        }
    }

    #[test]
    fn sections_are_those_that_are_asked_for() {
        let relay = Relay::new(Config::of("h:1", "h:2")).expect("the configuration is in order");
        let heads = |sections: &[&str]| -> Vec<String> {
            text(&relay, sections)
                .lines()
                .filter_map(|line| Some(line.strip_prefix("# ")?.to_string()))
                .collect()
        };
        let every = ["Server", "Clients", "Stats", "Replication"];
        for asked in [&[][..], &["ALL"], &["default"], &["everything"], &["stats", "all"]] {
            assert_eq!(heads(asked), every, "{asked:?}");
        }
        assert_eq!(heads(&["clients", "Server"]), ["Server", "Clients"]);
        assert_eq!(heads(&["memory"]), [""; 0]);
    }
}
