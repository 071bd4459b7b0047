//! Machines as text.

use super::{CardAnswer, CollectAnswer, DescribedMachineAnswer, NewDeviceAnswer, OddityAnswer};
use offpath_quantity::Bytes;
use offpath_quantity::figures::short;
use offpath_terminal::output::{Screen, TableCell};

impl CollectAnswer {
    /// What a machine says, what is odd, and what is missing.
    pub fn text(&self, screen: &Screen) -> String {
        let mut text = self.machine.text(screen);
        if !self.missing.is_empty() {
            text += &screen.heading("Not run");
            for missing in &self.missing {
                text += &format!("{}: {}\n", missing.command, missing.why);
            }
        }
        text += &screen.heading("Files");
        for file in &self.files {
            text += &format!("{}: {} lines, {} of them read\n", file.file, file.lines, file.read_lines);
        }
        if let Some(archive) = &self.archive {
            text += &format!(
                "wrote {archive}; serial numbers, addresses and host names are masked. Look through it before you send it.\n\
                 next:\n  offpath new device my-card --base DEVICE --from {archive}\n"
            );
        }
        text.trim_start_matches('\n').to_string()
    }
}

impl NewDeviceAnswer {
    /// What was written, what the machine said, and what is odd.
    pub fn text(&self, screen: &Screen) -> String {
        let mut text = self.files.iter().map(|file| format!("wrote {file}\n")).collect::<String>();
        text += &screen.heading("What the machine says");
        let rows = self.numbers.iter().map(|number| {
            vec![
                TableCell::Name(number.name.clone().unwrap_or_else(|| "(no such part)".to_string())),
                TableCell::Number(number.value.clone()),
                TableCell::Text(number.provenance.clone()),
                TableCell::Text(number.source.clone()),
            ]
        });
        text += &screen.table(&["number", "value", "provenance", "source"], rows.collect());
        text += &self.machine.remarks(screen);
        let device = &self.files[0];
        text += &match (&self.base, self.carried_over) {
            (Some(base), Some(carried)) => format!(
                "next:\n  {carried} numbers are carried over from {base} and its host: guesses, until you replace them\n  \
                 offpath device show {device}\n    shows each with its interval and source\n  offpath plan DESIGN --device \
                 {device}\n    plans with them, and says which to measure first\n"
            ),
            _ => format!(
                "next:\n  offpath device show {device}\n    names what is still blank, and refuses the files until nothing is\n"
            ),
        };
        text
    }
}

impl DescribedMachineAnswer {
    fn text(&self, screen: &Screen) -> String {
        let mut text = screen.heading("Machine");
        let processor = &self.processor;
        let mut line = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                text += &format!("{name}: {value}\n");
            }
        };
        line("processor", processor.model.clone());
        let threads = processor.threads_per_core.map(|threads| format!(", {threads} threads each"));
        line("cores", processor.cores.map(|cores| format!("{cores}{}", threads.unwrap_or_default())));
        line("clock", processor.frequency_at_most_ghz.map(|clock| format!("{} GHz at most", short(clock))));
        line("governor", processor.governor.clone());
        line("last-level cache", processor.last_level_cache.clone());
        line("memory", processor.memory_bytes.map(|bytes| Bytes::new(bytes).to_string()));
        for node in self.nodes.iter().filter(|_| self.nodes.len() > 1) {
            let memory =
                node.memory_bytes.map(|bytes| format!(", {}", Bytes::new(bytes))).unwrap_or_default();
            let threads = node.threads.map(|threads| format!("{threads} threads")).unwrap_or_default();
            line(&format!("node {}", node.node), Some(format!("{threads}{memory}")));
        }
        if let Some(card) = &self.card {
            text += &card.text(screen);
        }
        if !self.links.is_empty() {
            text += &screen.heading("Links between the card and the root");
            let state = |speed: Option<f64>, lanes: Option<u64>| {
                let known = speed.zip(lanes).map(|(speed, lanes)| format!("{} GT/s x{lanes}", short(speed)));
                known.unwrap_or_else(|| "-".to_string())
            };
            let rows = self.links.iter().map(|link| {
                vec![
                    TableCell::Name(link.lower.clone()),
                    TableCell::Name(link.upper.clone().unwrap_or_else(|| "-".to_string())),
                    TableCell::Number(state(link.now_gt_per_s, link.now_lanes)),
                    TableCell::Number(state(link.at_most_gt_per_s, link.at_most_lanes)),
                    TableCell::Text(if link.is_on_card { "on the card" } else { "outside" }.to_string()),
                ]
            });
            text += &screen.table(&["below", "above", "now", "at most", "where"], rows.collect());
        }
        if !self.ports.is_empty() {
            text += &screen.heading("Ports");
            let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_string());
            let rows = self.ports.iter().map(|port| {
                vec![
                    TableCell::Name(format!("{} port {}", port.device, port.port)),
                    TableCell::Text(or_dash(
                        port.is_active.map(|up| if up { "up" } else { "down" }.to_string()),
                    )),
                    TableCell::Number(or_dash(
                        port.rate_gbit_per_s.map(|rate| format!("{} Gbit/s", short(rate))),
                    )),
                    TableCell::Number(or_dash(port.mtu_bytes.map(|mtu| Bytes::new(mtu).to_string()))),
                    TableCell::Text(or_dash(port.link_layer.clone())),
                    TableCell::Number(or_dash(port.outstanding_reads.map(|reads| reads.to_string()))),
                ]
            });
            let header = ["port", "state", "rate", "path MTU", "link layer", "READs in flight"];
            text += &screen.table(&header, rows.collect());
        }
        text + &self.remarks(screen)
    }

    /// What is odd and what is not said.
    fn remarks(&self, screen: &Screen) -> String {
        let mut text = String::new();
        if !self.oddities.is_empty() {
            text += &screen.heading("What is odd");
            for oddity in &self.oddities {
                text += &oddity.text();
            }
        }
        if !self.unsaid.is_empty() {
            text += &screen.heading("What is not said");
            for unsaid in &self.unsaid {
                text += &format!("{unsaid}\n");
            }
        }
        if !self.unread.is_empty() {
            text += &screen.heading("What is not read, or may be a part");
            for unread in &self.unread {
                text += &format!("{unread}\n");
            }
        }
        text
    }
}

impl CardAnswer {
    fn text(&self, screen: &Screen) -> String {
        let mut text = screen.heading(&format!("Card at {}", self.address));
        let mut line = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                text += &format!("{name}: {value}\n");
            }
        };
        line("name", Some(self.name.clone()));
        line("firmware", self.firmware.clone());
        line("mode", self.mode.map(str::to_string));
        line("memory node", self.numa_node.map(|node| node.to_string()));
        line("MaxPayload", self.max_payload_bytes.map(|size| Bytes::new(size).to_string()));
        line("MaxReadReq", self.max_read_request_bytes.map(|size| Bytes::new(size).to_string()));
        line("relaxed ordering", self.relaxed_ordering.map(|on| if on { "on" } else { "off" }.to_string()));
        if self.is_own_processor {
            line("seen from", Some("the card's own processor".to_string()));
        }
        text
    }
}

impl OddityAnswer {
    fn text(&self) -> String {
        let mut text = format!("warning: {} ({})\n", self.what, self.at);
        for cost in &self.costs {
            let payload = Bytes::new(cost.payload_bytes);
            let (now, mended, unit) = match cost.payload_bytes {
                ..=1024 => (cost.now_mreq_per_s, cost.mended_mreq_per_s, "M/s"),
                _ => (cost.now_gbit_per_s, cost.mended_gbit_per_s, "Gbit/s"),
            };
            text += &format!(
                "  {payload} {} on {}: {} instead of {} {unit} by the model\n",
                cost.verb.to_uppercase(),
                cost.path,
                short(now),
                short(mended)
            );
        }
        if !self.is_in_model {
            text += "  what it costs the model cannot say\n";
        }
        text + &format!("  {}\n", self.next_step)
    }
}
