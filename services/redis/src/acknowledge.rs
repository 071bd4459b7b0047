//! What the master is told that was replicated, and when.
//!
//! To the master, an acknowledgement says two things: how far a replica is, and that it lives, which is what
//! `min-replicas-to-write` counts. The relay says either for its replicas alone: an acknowledgement leaves when as
//! many replicas as the quorum has were heard since the last one, and never by the clock.

use crate::relay::{Current, LinkState, Relay};
use crate::replica::{LIVES, Phase, Replica};
use crate::resp;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Acknowledgements that the master did not ask for are this far apart at least, however many replicas speak.
const APART: Duration = Duration::from_millis(500);
/// How much later than that one that lives may be heard.
const LATE: Duration = Duration::from_millis(300);

/// One acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// The offset that the quorum has.
    pub offset: u64,
    /// The offset that the quorum has on disk, where so many replicas say one.
    pub fsynced: Option<u64>,
}

impl Acknowledgement {
    /// Its request.
    pub fn write(&self, out: &mut Vec<u8>) {
        let offset = self.offset.to_string();
        let mut words: Vec<&[u8]> = vec![b"REPLCONF", b"ACK", offset.as_bytes()];
        let fsynced = self.fsynced.map(|fsynced| fsynced.to_string());
        if let Some(fsynced) = &fsynced {
            words.extend([b"FACK".as_slice(), fsynced.as_bytes()]);
        }
        resp::write_request(out, &words);
    }
}

/// The `wanted`-th of the largest values.
fn nth_largest<T: Ord>(values: impl Iterator<Item = T>, wanted: usize) -> Option<T> {
    let mut values: Vec<T> = values.collect();
    values.sort_unstable_by(|a, b| b.cmp(a));
    values.into_iter().nth(wanted.checked_sub(1)?)
}

impl Relay {
    /// Takes an acknowledgement of a replica.
    pub fn acknowledged(&self, replica: &Replica, offset: u64, fsynced: Option<u64>) {
        let last = self.current.borrow().backlog.published().saturating_sub(1);
        replica.acknowledged.set(offset.min(last).max(replica.acknowledged.get()));
        if let Some(fsynced) = fsynced {
            let fsynced = fsynced.min(last).max(replica.fsynced.get().unwrap_or(0));
            replica.fsynced.set(Some(fsynced));
        }
        self.lives(replica);
    }

    /// Notes that a replica was heard, as one that loads is by empty lines.
    pub fn lives(&self, replica: &Replica) {
        replica.lived.set(Some(Instant::now()));
        if self.current.borrow().link == LinkState::Held {
            // It may be who the master is followed for.
            self.tell_waiting();
        }
        self.tell_master();
    }

    /// Tells the master what can be said, if it is time to.
    pub fn tell_master(&self) {
        let current = self.current.borrow();
        if self.is_due(&current) {
            self.acknowledge.notify_one();
        }
    }

    /// Whether an acknowledgement is owed, and a living quorum stands behind it.
    fn is_due(&self, current: &Current) -> bool {
        let Some(wanted) = self.settings().config.acknowledge.quorum() else { return true };
        let heard = current.replicas.values().filter(|replica| replica.is_served());
        let Some(lived) = nth_largest(heard.filter_map(|replica| replica.lived.get()), wanted) else {
            return false;
        };
        let known = self.replicated(current);
        let answers =
            current.asked.is_answered(Some(known.offset)) || current.asked_fsync.is_answered(known.fsynced);
        lived > current.told_at && (answers || current.told_at.elapsed() >= APART)
            || answers && lived.elapsed() <= LIVES
    }

    /// The acknowledgement that is due, which is then taken for told.
    pub fn take_acknowledgement(&self) -> Option<Acknowledgement> {
        let mut current = self.current.borrow_mut();
        if !self.is_due(&current) {
            return None;
        }
        let known = self.replicated(&current);
        current.told_at = Instant::now();
        // The master keeps the most that it was told, whatever it is told later.
        if known.offset > current.acknowledged {
            (current.acknowledged, current.raised_at) = (known.offset, Some(current.told_at));
        }
        if known.fsynced > current.acknowledged_fsync {
            (current.acknowledged_fsync, current.raised_fsync_at) = (known.fsynced, Some(current.told_at));
        }
        current.asked.answer(Some(known.offset));
        current.asked_fsync.answer(known.fsynced);
        Some(known)
    }

    /// What as many replicas have as the configuration asks for.
    pub fn replicated(&self, current: &Current) -> Acknowledgement {
        let Some(wanted) = self.settings().config.acknowledge.quorum() else {
            return Acknowledgement { offset: current.backlog.published().saturating_sub(1), fsynced: None };
        };
        let online = || current.replicas.values().filter(|replica| replica.counts());
        Acknowledgement {
            offset: nth_largest(online().map(|replica| replica.acknowledged.get()), wanted).unwrap_or(0),
            fsynced: nth_largest(online().filter_map(|replica| replica.fsynced.get()), wanted),
        }
    }

    /// Whether the master was told more than the replicas that are left have. It takes no acknowledgement back, and would have
    /// WAIT and its own shutdown count who is gone, so that the link has to begin anew. One that has not spoken since may
    /// have all of it, and has a second to say so.
    pub fn stands_for_less(&self) -> bool {
        let Some(wanted) = self.settings().config.acknowledge.quorum() else { return false };
        let current = self.current.borrow();
        if current.link != LinkState::Up {
            return false;
        }
        let here = || {
            let replicas = current.replicas.values();
            replicas.filter(|replica| replica.acknowledges && replica.dropped.get().is_none())
        };
        let may_have = |replica: &Replica, raised: Instant| {
            let spoke = replica.lived.get().or(replica.joined.get());
            spoke.is_some_and(|spoke| spoke <= raised && spoke.elapsed() <= LIVES + LATE)
        };
        let is_less = |raised: Option<Instant>, has: &dyn Fn(&Replica) -> bool| {
            raised.is_some_and(|raised| {
                here().filter(|replica| has(replica) || may_have(replica, raised)).count() < wanted
            })
        };
        is_less(current.raised_at, &|replica| replica.acknowledged.get() >= current.acknowledged)
            || is_less(current.raised_fsync_at, &|replica| {
                replica.fsynced.get() >= current.acknowledged_fsync
            })
    }

    /// Replicas that acknowledge, or load and say that they live, as often as one that lives does: those that the master's
    /// count of this relay stands on.
    pub fn living(&self, current: &Current) -> usize {
        let lives = |replica: &&Rc<Replica>| {
            replica.lived.get().is_some_and(|lived| lived.elapsed() <= 2 * LIVES + LATE)
        };
        current.replicas.values().filter(|replica| replica.is_served()).filter(lives).count()
    }

    /// The replicas that have acknowledged `offset`.
    pub fn replicas_with(&self, offset: u64) -> usize {
        let current = self.current.borrow();
        let replicas = current.replicas.values().filter(|replica| replica.counts());
        replicas.filter(|replica| replica.acknowledged.get() >= offset).count()
    }

    /// Whether there is somebody to follow the master for. One that is `strict` refuses writes while it has no
    /// replica that lives, so it gets none before as many as the quorum has wait for it or live. One that fails to load
    /// its files does neither.
    pub fn has_reason_to_follow(&self, strict: bool) -> bool {
        let Some(wanted) = self.settings().config.acknowledge.quorum() else { return true };
        let current = self.current.borrow();
        let lives = |replica: &Replica| {
            replica.acknowledges && replica.phase.get() == Phase::Waiting
                || replica.lived.get().is_some_and(|lived| lived.elapsed() <= 2 * LIVES)
        };
        let replicas = current.replicas.values().filter(|replica| replica.dropped.get().is_none());
        if strict {
            replicas.filter(|replica| lives(replica) && !current.is_failing(replica)).count() >= wanted
        } else {
            // One that comes back in time finds the stream where it left it.
            let linger = self.settings().checked.linger;
            replicas.count() > 0 || current.left.is_some_and(|left| left.elapsed() < linger)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Acknowledge, Config};
    use crate::relay::tests::{replica, replica_that, take};
    use crate::relay::{FAILURES, Failures, NoFile};

    fn relay(acknowledge: Acknowledge) -> Rc<Relay> {
        let mut config = Config::of("127.0.0.1:6379", "127.0.0.1:0");
        config.acknowledge = acknowledge;
        let relay = Relay::new(config).expect("the configuration is in order");
        long_ago(&relay);
        relay
    }

    /// As if the last acknowledgement were older than any that follow each other.
    fn long_ago(relay: &Relay) {
        let mut current = relay.current.borrow_mut();
        current.told_at = current.told_at.checked_sub(2 * LIVES).expect("the machine is up for longer");
    }

    fn told(relay: &Relay) -> Option<u64> {
        relay.take_acknowledgement().map(|told| told.offset)
    }

    #[test]
    fn no_acknowledgement_goes_beyond_what_was_published_or_back() {
        let relay = relay(Acknowledge::replicas(1));
        // 120 B are there, of which the last 20 are the begin of a command.
        take(&relay, 120, 101);
        let replica = replica(&relay, 1, Phase::Online);
        for (offset, known) in [(60, 60), (40, 60), (101, 100), (120, 100), (u64::MAX, 100)] {
            relay.acknowledged(&replica, offset, None);
            assert_eq!((replica.acknowledged.get(), told(&relay)), (known, Some(known)), "{offset}");
            long_ago(&relay);
        }
        take(&relay, 30, 151);
        assert_eq!(
            relay.replicated(&relay.current.borrow()).offset,
            100,
            "what nobody has is not acknowledged"
        );
        assert_eq!((relay.replicas_with(100), relay.replicas_with(101)), (1, 0));
        relay.acknowledged(&replica, 150, None);
        assert_eq!(told(&relay), Some(150));
    }

    #[test]
    fn what_was_received_is_acknowledged_where_that_was_chosen() {
        let relay = relay(Acknowledge::RECEIVED);
        assert_eq!(told(&relay), Some(0));
        take(&relay, 120, 101);
        assert_eq!(told(&relay), Some(100));
        assert!(relay.has_reason_to_follow(true), "it stands for itself");
    }

    #[test]
    fn the_master_is_told_what_as_many_replicas_have_as_were_asked_for() {
        let relay = relay(Acknowledge::replicas(2));
        take(&relay, 100, 101);
        let all: Vec<_> = (1..=3).map(|number| replica(&relay, number, Phase::Online)).collect();
        relay.acknowledged(&all[0], 90, Some(80));
        assert_eq!(told(&relay), None, "one of two lives");
        relay.acknowledged(&all[1], 50, None);
        let both = relay.take_acknowledgement();
        assert_eq!(both, Some(Acknowledgement { offset: 50, fsynced: None }), "one of two has it on disk");
        long_ago(&relay);
        relay.acknowledged(&all[2], 70, Some(60));
        assert_eq!(
            relay.take_acknowledgement().map(|told| (told.offset, told.fsynced)),
            Some((70, Some(60)))
        );
        long_ago(&relay);
        // One that loads lives, and has nothing that counts.
        let loading = replica(&relay, 4, Phase::Loading);
        loading.acknowledged.set(100);
        relay.lives(&loading);
        assert_eq!(told(&relay), Some(70));
        all[0].drop_for("of this test");
        assert_eq!(relay.replicas_with(50), 2);
        assert_eq!(relay.replicas_with(51), 1);
    }

    #[test]
    fn who_lives_was_given_something_and_was_heard_just_now() {
        let relay = relay(Acknowledge::replicas(2));
        take(&relay, 100, 101);
        let living = || relay.living(&relay.current.borrow());
        let all = [1, 2, 3].map(|number| replica(&relay, number, Phase::Online));
        assert_eq!(living(), 0, "none has said anything");
        all.iter().for_each(|one| relay.acknowledged(one, 50, None));
        assert_eq!(living(), 3);
        all[0].phase.set(Phase::Loading);
        all[1].lived.set(Instant::now().checked_sub(3 * LIVES));
        assert_eq!(living(), 2, "one loads and says that it lives, and one is stopped");
        all[2].drop_for("of this test");
        all[0].phase.set(Phase::Waiting);
        assert_eq!(living(), 0);
    }

    #[test]
    fn a_replica_that_falls_silent_is_told_once() {
        let relay = relay(Acknowledge::replicas(1));
        take(&relay, 100, 101);
        let replica = replica(&relay, 1, Phase::Online);
        relay.acknowledged(&replica, 100, None);
        assert_eq!(told(&relay), Some(100));
        long_ago(&relay);
        let heard = replica.lived.get().and_then(|lived| lived.checked_sub(3 * LIVES));
        replica.lived.set(heard);
        assert_eq!(told(&relay), None, "it was not heard since");
        // Nor is a question of the master's answered for it.
        relay.current.borrow_mut().asked.ask(90);
        assert_eq!(told(&relay), None);
        assert!(!relay.has_reason_to_follow(true));
        assert!(relay.has_reason_to_follow(false), "its connection is there");
    }

    #[test]
    fn who_does_not_say_how_far_it_is_counts_for_nothing() {
        let relay = relay(Acknowledge::replicas(1));
        take(&relay, 100, 101);
        for (number, phase) in [(1, Phase::Waiting), (2, Phase::Online)] {
            let old = replica_that(&relay, number, phase, false);
            old.acknowledged.set(100);
            assert!(!old.counts());
        }
        assert_eq!((relay.replicas_with(0), relay.replicated(&relay.current.borrow()).offset), (0, 0));
        assert!(!relay.has_reason_to_follow(true), "a master that wants replicas would take it for one");
        assert!(relay.has_reason_to_follow(false));
    }

    #[test]
    fn who_fails_to_load_its_files_is_no_reason_for_a_strict_master_until_it_has_or_a_minute_is_over() {
        let relay = relay(Acknowledge::replicas(1));
        let waiting = replica(&relay, 1, Phase::Waiting);
        let key = (waiting.address.clone(), waiting.port);
        let fail =
            |count, last| relay.current.borrow_mut().failures.insert(key.clone(), Failures { count, last });
        relay.current.borrow_mut().needs_replicas = true;
        let stands = || (relay.has_reason_to_follow(true), !relay.is_alone());
        fail(FAILURES - 1, Instant::now());
        assert_eq!(stands(), (true, true));
        fail(FAILURES, Instant::now());
        assert_eq!(stands(), (false, false));
        waiting.phase.set(Phase::Loading);
        waiting.lived.set(Some(Instant::now()));
        assert_eq!(stands(), (false, false), "it has said that it loads before");
        assert!(relay.has_reason_to_follow(false), "any other master loses nothing by it");
        waiting.phase.set(Phase::Online);
        assert_eq!(stands(), (true, true));
        waiting.phase.set(Phase::Waiting);
        // It may be another one by now, and nothing else would show that.
        fail(
            FAILURES,
            Instant::now().checked_sub(Duration::from_secs(61)).expect("the machine is up for longer"),
        );
        assert_eq!(stands(), (true, true));
    }

    #[test]
    fn who_needs_a_file_that_does_not_come_is_no_reason_for_a_strict_master() {
        let relay = relay(Acknowledge::replicas(1));
        let id = "a".repeat(40).parse().expect("an id");
        relay.restart(id, 0);
        replica(&relay, 1, Phase::Waiting);
        assert!(relay.has_reason_to_follow(true));
        let fails = |count, last| {
            let failures = Failures { count, last };
            relay.current.borrow_mut().no_file = Some(NoFile { failures, why: "of this test".into() });
        };
        fails(FAILURES - 1, Instant::now());
        assert!(relay.has_reason_to_follow(true), "the next may come whole");
        fails(FAILURES, Instant::now());
        assert!(!relay.has_reason_to_follow(true));
        assert!(relay.has_reason_to_follow(false), "any other master loses nothing by it");
        fails(
            FAILURES,
            Instant::now().checked_sub(Duration::from_secs(61)).expect("the machine is up for longer"),
        );
        assert!(relay.has_reason_to_follow(true), "there may be room by now");
        fails(FAILURES, Instant::now());
        relay.reload(Config::of("127.0.0.1:6379", "127.0.0.1:0")).expect("the configuration is in order");
        assert!(relay.has_reason_to_follow(true), "an operator may have made room");
        fails(FAILURES, Instant::now());
        // One that goes on from where it was needs no file.
        replica_that(&relay, 2, Phase::Online, true).lived.set(Some(Instant::now()));
        assert!(relay.has_reason_to_follow(true));
    }

    #[test]
    fn a_strict_master_is_left_as_soon_as_fewer_are_here_than_the_quorum() {
        let relay = relay(Acknowledge::replicas(2));
        let set = |link, needs_replicas| {
            let mut current = relay.current.borrow_mut();
            (current.link, current.needs_replicas, current.left) =
                (link, needs_replicas, Some(Instant::now()));
        };
        set(LinkState::Up, true);
        let all = [1, 2, 3].map(|number| replica(&relay, number, Phase::Online));
        // One that says nothing stands for nobody.
        replica_that(&relay, 4, Phase::Online, false);
        assert!(!relay.is_alone());
        all[0].drop_for("of this test");
        assert!(!relay.is_alone());
        all[1].drop_for("of this test");
        assert!(relay.is_alone(), "one of two is left");
        set(LinkState::Synchronising, true);
        assert!(!relay.is_alone(), "one waits for the file, and meanwhile the master counts nobody");
        set(LinkState::Up, false);
        assert!(!relay.is_alone(), "a master that is not strict is followed for anybody");
        relay.current.borrow_mut().replicas.clear();
        assert!(!relay.is_alone(), "it is not left at once");
        set(LinkState::Synchronising, true);
        assert!(relay.is_alone());
    }

    #[test]
    fn what_a_replica_had_that_is_gone_is_taken_back() {
        let relay = relay(Acknowledge::replicas(1));
        take(&relay, 100, 101);
        relay.current.borrow_mut().link = LinkState::Up;
        let [first, second] = [1, 2].map(|number| replica(&relay, number, Phase::Online));
        let ago = |seconds| Instant::now().checked_sub(Duration::from_secs(seconds)).expect("up for longer");
        relay.acknowledged(&second, 40, None);
        relay.acknowledged(&first, 90, Some(80));
        assert_eq!(told(&relay), Some(90));
        assert!(!relay.stands_for_less());
        first.drop_for("of this test");
        assert!(!relay.stands_for_less(), "the second may have it and has not said so yet");
        second.lived.set(Some(ago(2)));
        assert!(relay.stands_for_less(), "it says nothing");
        relay.acknowledged(&second, 89, None);
        assert!(relay.stands_for_less(), "it has said that it has less");
        relay.acknowledged(&second, 90, None);
        assert!(relay.stands_for_less(), "and nothing of a disk");
        relay.acknowledged(&second, 90, Some(80));
        assert!(!relay.stands_for_less());
        // One that loads again has what it had.
        second.phase.set(Phase::Loading);
        assert!(!relay.stands_for_less());
        second.drop_for("of this test");
        assert!(relay.stands_for_less());
        relay.current.borrow_mut().link = LinkState::Down;
        assert!(!relay.stands_for_less(), "nobody counts it");
    }

    /// Others that say more of their stream say nothing of their disk, and take back what one had there that is gone.
    #[test]
    fn what_was_on_a_disk_that_is_gone_is_taken_back_while_others_go_on() {
        let relay = relay(Acknowledge::replicas(1));
        take(&relay, 1_000, 1_001);
        relay.current.borrow_mut().link = LinkState::Up;
        let [with, without] = [1, 2].map(|number| replica(&relay, number, Phase::Online));
        relay.acknowledged(&without, 90, None);
        relay.acknowledged(&with, 90, Some(80));
        assert_eq!(told(&relay), Some(90));
        with.drop_for("of this test");
        for offset in [100, 110] {
            relay.acknowledged(&without, offset, None);
            long_ago(&relay);
            assert_eq!(told(&relay), Some(offset));
            assert!(relay.stands_for_less(), "{offset}");
        }
    }

    /// One that goes back to disk counts for nothing until it follows again, and the master keeps what it was told of it.
    #[test]
    fn what_a_replica_had_is_taken_back_though_the_master_was_told_less_since() {
        let relay = relay(Acknowledge::replicas(1));
        take(&relay, 100, 101);
        relay.current.borrow_mut().link = LinkState::Up;
        let [first, second] = [1, 2].map(|number| replica(&relay, number, Phase::Online));
        relay.acknowledged(&second, 40, Some(30));
        relay.acknowledged(&first, 90, Some(80));
        let told = || relay.take_acknowledgement().map(|told| (told.offset, told.fsynced));
        assert_eq!(told(), Some((90, Some(80))));
        first.phase.set(Phase::Loading);
        long_ago(&relay);
        relay.acknowledged(&second, 50, Some(40));
        assert_eq!(told(), Some((50, Some(40))));
        let kept = || (relay.current.borrow().acknowledged, relay.current.borrow().acknowledged_fsync);
        assert_eq!(kept(), (90, Some(80)));
        assert!(!relay.stands_for_less(), "the first has it and is here");
        first.drop_for("of this test");
        relay.acknowledged(&second, 50, Some(40));
        assert!(relay.stands_for_less());
    }

    /// The word of one that is gone is the last that the master has, and says nothing of one that hangs.
    #[test]
    fn who_hangs_stands_for_nobody_once_another_has_left() {
        let relay = relay(Acknowledge::replicas(1));
        {
            let mut current = relay.current.borrow_mut();
            (current.link, current.needs_replicas) = (LinkState::Up, true);
        }
        let ago = |seconds| Instant::now().checked_sub(Duration::from_secs(seconds)).expect("up for longer");
        let one = replica(&relay, 1, Phase::Online);
        assert!(!relay.is_alone(), "it has yet to speak");
        one.lived.set(Some(ago(14)));
        assert!(!relay.is_alone(), "the master sees that by itself");
        relay.current.borrow_mut().left = Some(Instant::now());
        assert!(relay.is_alone());
        one.lived.set(Some(ago(1)));
        assert!(!relay.is_alone());
    }

    #[test]
    fn a_master_that_asks_is_answered_once_it_is_so() {
        let relay = relay(Acknowledge::replicas(1));
        take(&relay, 100, 101);
        let replica = replica(&relay, 1, Phase::Online);
        relay.acknowledged(&replica, 70, None);
        assert_eq!(told(&relay), Some(70));
        relay.current.borrow_mut().asked.ask(80);
        relay.current.borrow_mut().asked_fsync.ask(80);
        relay.acknowledged(&replica, 79, None);
        assert_eq!(told(&relay), None, "one byte is missing, and what is known was told just now");
        relay.acknowledged(&replica, 80, Some(79));
        assert_eq!(told(&relay), Some(80));
        relay.acknowledged(&replica, 90, None);
        assert_eq!(told(&relay), None, "it was asked once");
        relay.acknowledged(&replica, 90, Some(80));
        assert_eq!(told(&relay), Some(90), "and once for what is on disk");
        assert!(relay.current.borrow().asked_fsync.is_empty());
    }

    #[test]
    fn an_acknowledgement_is_written_with_what_is_on_disk_where_that_is_known() {
        let mut out = Vec::new();
        Acknowledgement { offset: 7, fsynced: None }.write(&mut out);
        Acknowledgement { offset: 8, fsynced: Some(6) }.write(&mut out);
        let plain = "*3\r\n$8\r\nREPLCONF\r\n$3\r\nACK\r\n$1\r\n7\r\n";
        let with = "*5\r\n$8\r\nREPLCONF\r\n$3\r\nACK\r\n$1\r\n8\r\n$4\r\nFACK\r\n$1\r\n6\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), [plain, with].concat());
    }

    /// Many wait at the master at once, each for a write of its own: a later question keeps no answer to an earlier one back.
    #[test]
    fn each_of_many_questions_is_answered_as_soon_as_it_can_be() {
        let relay = relay(Acknowledge::replicas(1));
        take(&relay, 100, 101);
        let replica = replica(&relay, 1, Phase::Online);
        relay.acknowledged(&replica, 10, None);
        assert_eq!(told(&relay), Some(10));
        for at in [20, 40, 60] {
            relay.current.borrow_mut().asked.ask(at);
        }
        for (offset, said) in
            [(19, None), (20, Some(20)), (30, None), (45, Some(45)), (60, Some(60)), (90, None)]
        {
            relay.acknowledged(&replica, offset, None);
            assert_eq!(told(&relay), said, "{offset}");
        }
    }
}
