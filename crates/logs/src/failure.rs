//! Words in which a program that fails is spoken of by the system, its libraries, its launcher and its shell.

/// They, in small letters: texts of `strerror`, and what dynamic linkers, drivers, `srun`, `mpirun` and `timeout` print. Those are left
/// out that a script's own `cat` and `grep` print of files that a machine has not.
const WORDS: &[&str] = &[
    "address already in use",
    "aer:",
    "assertion",
    "broken pipe",
    "bus error",
    "cannot allocate memory",
    "cannot open shared object file",
    "command not found",
    "completion with error",
    "connection refused",
    "connection reset",
    "core dumped",
    "error:",
    "exceeded memory limit",
    "exited with exit code",
    "exited on signal",
    "failed",
    "fatal error",
    "floating point exception",
    "host is down",
    "illegal instruction",
    "name or service not known",
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
    "state is down",
    "symbol lookup error",
    "test aborted",
    "timed out",
    "traceback (most recent call last)",
    "transport retry counter exceeded",
    "unreachable",
];

/// Words that a script has for a run that did not end well, alone on a line: in prose they say anything.
const ALONE: &[&str] = &["fail", "timeout", "error", "errors"];

/// What stands before the number by which a program or a script says how another one ended: 0 says that it ended well.
const STATUS: &[&str] = &["rc", "exit", "exit status", "exit code", "return code", "returned"];

/// What stands behind the number of what went wrong.
const COUNTED: &[&str] = &["error", "errors", "failed", "failure", "failures", "timeouts"];

/// What before a word says that it was not so.
const NEGATIONS: &[&str] = &["0", "no", "not", "none", "never", "without"];

/// Whether a line counts what went wrong, or has the status by which a program ended, that is not 0.
fn counts_failure(small: &str) -> bool {
    let words: Vec<&str> =
        small.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let is_status = |before: &[&str]| {
        let ends = |status: &&str| before.ends_with(&status.split(' ').collect::<Vec<_>>());
        STATUS.iter().any(ends)
    };
    (0..words.len()).any(|at| {
        let is_number = words[at].bytes().all(|byte| byte.is_ascii_digit());
        let is_some = is_number && words[at].bytes().any(|byte| byte != b'0');
        is_some && (is_status(&words[..at]) || words.get(at + 1).is_some_and(|what| COUNTED.contains(what)))
    })
}

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
    let is_denied = |at: usize| {
        let before = small[..at].trim_end();
        NEGATIONS.iter().any(|word| before.ends_with(word) && is_word(before.len() - word.len(), word))
    };
    let has = |word: &&str| small.match_indices(*word).any(|(at, _)| is_word(at, word) && !is_denied(at));
    let is_alone = |word: &&str| {
        let bare = small.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        bare == *word
    };
    let signalled = |word: &&str| {
        small.match_indices(*word).any(|(at, _)| {
            // As `Killed`, `[1]+  Killed   ib_write_bw` and `run.sh: line 3: 4711 Killed`.
            let is_behind_number =
                small[..at].trim_end().ends_with(|c: char| c.is_ascii_digit() || "]+-".contains(c));
            is_word(at, word) && (small.trim().len() == word.len() || at > 0 && is_behind_number)
        })
    };
    counts_failure(&small)
        || WORDS.iter().any(has)
        || ALONE.iter().any(is_alone)
        || SIGNALS.iter().any(signalled)
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
            "node2 | FAILED | rc=124 >>",
            "node2 | UNREACHABLE! => {\"changed\": false}",
            "ib_write_bw: returned 1",
            "exit status 139",
            "exit code: 1",
            "FAIL",
            "[FAILED]",
            "TIMEOUT",
            "test aborted",
            "BW_test completed with 3 errors",
            "2 failed, 0 errors",
            " Port number 1 state is Down",
            "mlx5_2: AER: Corrected error received",
            "Traceback (most recent call last):",
        ] {
            assert!(says_failure(line), "{line}");
        }
        for line in [
            "Errors of the other port:",
            "the run was killed by us on purpose",
            "we quit here",
            "error-free run",
            "0 errors",
            "completed with 0 errors, 0 failed",
            "node2 | SUCCESS | rc=0 >>",
            "exit status 0",
            "none failed",
            "the timeout of a queue pair is 14",
            "version 5 of the tool",
            "returned by 10.0.0.1",
            "standard error of the mean",
            "Everything is 3 times as fast",
        ] {
            assert!(!says_failure(line), "{line}");
        }
    }
}
