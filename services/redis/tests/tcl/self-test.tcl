# Shows report.tcl, with the list beside it, logs of failures that no relay may have, and ones that are listed or noted.
# Exit code 1 names what it took wrongly.

set here [file dirname [file normalize [info script]]]
set wrong 0

# Each case: file, lines of its log, whether the report has to refuse it, what it has to print.
set cases {
    {integration/replication "\[err\]: any test in tests/integration/replication.tcl\nExpected 43 == 4 (context: sync_full)\n\\o/ The End" 1 "NOT ALLOWED"}
    {integration/psync2 "\[err\]: PSYNC2: total sum of full synchronizations is exactly 4 in tests/integration/psync2.tcl\nExpected 43 == 4 \[status x sync_full\]\nThe End" 1 "NOT ALLOWED"}
    {integration/psync2-master-restart "\[err\]: PSYNC2: Full resync after Master restart when too many key expired in tests/integration/psync2-master-restart.tcl\nExpected \[status x sync_full\] == 1\nThe End" 1 "NOT ALLOWED"}
    {integration/psync2-master-restart "\[err\]: PSYNC2: Partial resync after Master restart using RDB aux fields with expire in tests/integration/psync2-master-restart.tcl\nExpected abc eq def \[x debug digest\]\nThe End" 1 "NOT ALLOWED"}
    {integration/replication-psync "\[err\]: Test replication partial resync: ok psync in tests/integration/replication-psync.tcl\nMaster - Replica inconsistency, Run diff -u\nThe End" 1 "NOT ALLOWED"}
    {integration/replication "\[err\]: diskless loading short read in tests/integration/replication.tcl\nReplica didn't disconnect\nThe End" 1 "NOT ALLOWED"}
    {integration/replication "\[exception\]: Executing test client: child process exited abnormally.\nchild process exited abnormally\nThe End" 1 "NOT ALLOWED"}
    {integration/psync2-pingoff "\[err\]: test various edge cases of repl topology changes with missing pings at the end in tests/integration/psync2-pingoff.tcl\nExpected '8' to be equal to '6' (context: type eval)\nThe End" 1 "NOT ALLOWED"}
    {integration/replication "\[ok\]: a test (3 ms)\n" 1 "NOT reached"}
    {integration/replication "The End" 1 "no test ran"}
    {unit/auth "\[err\]: MASTERAUTH test with binary password in tests/unit/auth.tcl\nCan't turn the instance into a replica\nThe End" 0 "passwords of a relay are text"}
    {integration/replication-psync "\[ignore\]: noted: ok psync in tests/integration/replication-psync.tcl: the count is 0\n\[ok\]: ok psync (9 ms)\nThe End" 0 "ok psync: the count is 0"}
}
file mkdir [set folder [exec mktemp -d]]
foreach case $cases {
    lassign $case file text refused printed
    set channel [open [file join $folder "[string map {/ -} $file].log"] w]
    puts $channel [subst -nocommands -novariables $text]
    close $channel
    set failed [catch {exec [info nameofexecutable] $here/report.tcl $here/allowed $folder $file} said]
    if {$failed != $refused || ![string match "*$printed*" $said]} {
        set wrong 1
        puts "wrong: of $file the report [expr {$failed ? {refuses} : {takes}}]:\n$text\n$said\n"
    }
}
file delete -force $folder
if {!$wrong} { puts "the report refuses what it has to, in [llength $cases] logs" }
exit $wrong
