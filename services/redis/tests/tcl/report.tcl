# Prints what passed of each file by its log, each failure with the suite's reason, and ours where it is allowed.
# Exit code 1 means that something failed that is not.

proc allowed_by {file name reason rules} {
    foreach rule $rules {
        lassign $rule files names reasons why
        if {[string match $files $file] && [string match $names $name] && [string match $reasons $reason]} {
            return $why
        }
    }
    return ""
}

set files [lassign $argv rules_file logs]
set rules {}
set channel [open $rules_file]
foreach line [split [read $channel] "\n"] {
    if {$line ne "" && [string index $line 0] ne "#"} {
        lappend rules [split $line "\t"]
    }
}
close $channel

set failures {}
set notes {}
set refused 0
puts [format "%-34s %6s %6s %8s %6s %8s  %s" file passed noted allowed failed seconds end]
foreach file $files {
    set channel [open [file join $logs "[string map {/ -} $file].log"]]
    # Colours are for a terminal.
    set text [regsub -all {\x1b\[[0-9;]*m} [read $channel] ""]
    close $channel
    set passed [regexp -all -line {^\[ok\]: } $text]
    set end [expr {[string match "*The End*" $text] ? "reached" : "NOT reached"}]
    set seconds ?
    regexp {seconds: (\d+)} $text -> seconds
    set allowed 0
    set failed 0
    set lines [split $text "\n"]
    set noted 0
    for {set at 0} {$at < [llength $lines]} {incr at} {
        if {[regexp {^\[ignore\]: noted: (.*)$} [lindex $lines $at] -> what]} {
            incr noted
            lappend notes [regsub { in tests/[^:]*:} "$file: $what" ":"]
        }
        if {[regexp {^\[(err|exception|timeout)\]: (.*)$} [lindex $lines $at] -> kind what]} {
            set name [regsub { in tests/.*$} $what ""]
            set reason [string trim [lindex $lines [expr {$at + 1}]]]
            set why [allowed_by $file $name $reason $rules]
            if {$why eq ""} { incr failed } else { incr allowed }
            lappend failures [list $file $name $reason $why]
        }
    }
    if {$end ne "reached"} { set refused 1 }
    if {$passed + $allowed + $failed == 0} {
        set end "no test ran"
        set refused 1
    }
    if {$failed > 0} { set refused 1 }
    puts [format "%-34s %6d %6d %8d %6d %8s  %s" $file $passed $noted $allowed $failed $seconds $end]
}
foreach failure $failures {
    lassign $failure file name reason why
    puts "\n$file: $name\n  the suite: $reason"
    if {$why eq ""} { set why "NOT ALLOWED" }
    puts "  $why"
}
if {[llength $notes]} { puts "\nnoted, with the test gone on:" }
foreach what $notes { puts "  $what" }
exit $refused
