//! INFO and ROLE, with the names that Redis gives the same things.

use crate::relay::{LinkState, Phase, Relay};
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
            relay.current.borrow().open,
            relay.config.limits.connections
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

// Writing to a string cannot fail, which is why results of `write!` are dropped here.
fn server(relay: &Relay, text: &mut String) {
    let _ = write!(
        text,
        "# Server\r\nserver_name:offpath-relay\r\nredis_version:{}\r\nredis_mode:standalone\r\n\
         process_id:{}\r\nrun_id:{}\r\ntcp_port:{}\r\nuptime_in_seconds:{}\r\n\r\n",
        env!("CARGO_PKG_VERSION"),
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
         slave_read_repl_offset:{}\r\nslave_repl_offset:{offset}\r\n",
        if up { "up" } else { "down" },
        if up { current.heard.elapsed().as_secs() as i64 } else { -1 },
        u8::from(current.link == LinkState::Synchronising),
        current.backlog.end().saturating_sub(1),
    );
    // Sentinel never promotes a replica of priority 0, and a relay has no data to serve.
    let _ = write!(
        text,
        "slave_priority:0\r\nslave_read_only:1\r\nreplica_announced:1\r\nconnected_slaves:{}\r\n",
        current.replicas.len()
    );
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
            replica.acknowledged.get(),
            replica.heard.get().elapsed().as_secs()
        );
    }
    let id = current.id.unwrap_or(crate::handshake::ReplicationId::NONE);
    let second_offset = if current.second_offset == 0 { -1 } else { current.second_offset as i64 };
    let _ = write!(
        text,
        "master_failover_state:no-failover\r\nmaster_replid:{id}\r\nmaster_replid2:{}\r\n\
         master_repl_offset:{offset}\r\nsecond_repl_offset:{second_offset}\r\nrepl_backlog_active:1\r\n\
         repl_backlog_size:{}\r\nrepl_backlog_first_byte_offset:{}\r\nrepl_backlog_histlen:{}\r\n\
         relay_acknowledged_offset:{}\r\nrelay_quorum:{}\r\n\r\n",
        current.second_id,
        current.backlog.capacity(),
        current.backlog.start(),
        current.backlog.published() - current.backlog.start(),
        current.acknowledged,
        relay.config.acknowledge.replicas,
    );
}

/// The reply to ROLE of a replica.
pub fn role(relay: &Relay) -> Vec<u8> {
    let current = relay.current.borrow();
    let (host, port) = master(&current.master);
    let state = match current.link {
        LinkState::Down => "connect",
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
