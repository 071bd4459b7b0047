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
