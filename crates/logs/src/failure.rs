//! Words in which a program that fails is spoken of by the system, its libraries, its launcher and its shell.

/// They, in small letters: texts of `strerror`, and what dynamic linkers, drivers, `srun`, `mpirun` and `timeout` print. Those are left
/// out that a script's own `cat` and `grep` print of files that a machine has not.
const WORDS: &[&str] = &[
    "address already in use",
    "assertion",
    "broken pipe",
    "bus error",
    "cannot allocate memory",
    "cannot open shared object file",
    "command not found",
    "completion with error",
    "connection refused",
    "connection reset",
    "connection timed out",
    "core dumped",
    "error:",
    "exceeded memory limit",
    "exited with exit code",
    "exited on signal",
    "failed to",
    "fatal error",
    "floating point exception",
    "host is down",
    "illegal instruction",
    "name or service not known",
    "network is unreachable",
    "no ib devices found",
    "no route to host",
    "non-zero exit code",
    "non-zero status",
    "oom-kill",
    "out of memory",
    "protocol not supported",
    "segfault at",
    "segmentation fault",
    "sending signal",
    "symbol lookup error",
    "transport retry counter exceeded",
];

/// What a shell says of a program that a signal ended, alone on a line or behind its number: in prose the same words say anything.
const SIGNALS: &[&str] = &["killed", "terminated", "aborted", "hangup", "alarm clock", "quit"];

/// Whether a line says that a program failed.
pub(crate) fn says_failure(text: &str) -> bool {
    if text.len() > 1_000 {
        return false;
    }
    let small = text.to_ascii_lowercase();
    let is_word = |at: usize, word: &str| {
        let before = small[..at].bytes().next_back();
        let after = small[at + word.len()..].bytes().next();
        let ends = |byte: Option<u8>| byte.is_none_or(|byte| !byte.is_ascii_alphanumeric());
        ends(before) && (ends(after) || word.ends_with(':'))
    };
    let has = |word: &&str| small.match_indices(*word).any(|(at, _)| is_word(at, word));
    let signalled = |word: &&str| {
        small.match_indices(*word).any(|(at, _)| {
            // As `Killed`, `[1]+  Killed   ib_write_bw` and `run.sh: line 3: 4711 Killed`.
            let is_behind_number =
                small[..at].trim_end().ends_with(|c: char| c.is_ascii_digit() || "]+-".contains(c));
            is_word(at, word) && (small.trim().len() == word.len() || at > 0 && is_behind_number)
        })
    };
    WORDS.iter().any(has) || SIGNALS.iter().any(signalled)
}

#[cfg(test)]
mod tests {
    use super::says_failure;

    #[test]
    fn what_ends_a_program_is_told_from_prose() {
        for line in [
            "Killed",
            "[1]+  Killed                  ib_read_bw -a 10.0.0.1",
            "run.sh: line 3:  4711 Terminated              ib_read_bw",
            "Segmentation fault (core dumped)",
            "timeout: sending signal TERM to command 'ib_read_bw'",
            "srun: error: node1: task 0: Exited with exit code 1",
            "mlx5: node1: got completion with error:",
            "ibv_create_qp: Cannot allocate memory",
            "No IB devices found",
            "bash: ib_read_bw: command not found",
            "ib_read_bw: ../src/x.c:12: foo: Assertion `0' failed.",
            "mpirun noticed that process rank 0 with PID 7 on node n exited on signal 9 (Killed).",
        ] {
            assert!(says_failure(line), "{line}");
        }
        for line in [
            "Errors of the other port:",
            "the run was killed by us on purpose",
            "we quit here",
            "error-free run",
            "0 errors",
            "standard error of the mean",
            "Everything is 3 times as fast",
        ] {
            assert!(!says_failure(line), "{line}");
        }
    }
}
