"""What `apply` renames. Order matters: a rule sees what those before it wrote."""
import re

# Files that no rule touches.
SKIP = [r'(^|/)LICENSE', r'Cargo\.lock$', r'^docs/vocabulary\.md$', r'^crates/profile/(src|tests)/renamed\.rs$',
        r'^tests/mutants/Cargo', r'^crates/plan/tests/words\.rs$', r'^benches/rivals/']

RULES = []
def rule(part, old, new, only=None, but=None):
    RULES.append((part, re.compile(old), new, re.compile(only) if only else None, re.compile(but) if but else None))
def word(old, new, **k):
    rule('all', rf'\b{old}\b', new, **k)

# ---------------------------------------------------------------- exact sentences, wherever they stand
SENTENCES = []
def say(old, new, only=None):
    SENTENCES.append((old, new, only))

exec(open(__file__.replace('rules.py', 'sentences.py')).read())

# ---------------------------------------------------------------- keys and stations of profiles
word('reserved_contexts', 'reserved_inflight_slots')
word('write_context_time', 'write_slot_time')
word('receive_context_time', 'receive_slot_time')
word('list_time', 'batch_fixed_time')
word('listed_time', 'batch_per_wqe_time')
word('read_path_rate', 'inbound_read_rate')
rule('all', r'\bno-read-path\b', 'no-inbound-read-limit')
rule('all', r'\bread-path\.md\b', 'inbound-reads.md')
rule('all', r'\bno_read_path\b', 'no_inbound_read_limit')
rule('all', r'\.read-path\b', '.inbound_reads')
rule('all', r'"read-path"', '"inbound_reads"', only=r'^crates/route/')
rule('all', r'\bread_path\b', 'inbound_reads')
rule('all', r'\b(?:a |the )?host-side read path\b', lambda m: {'a': 'a host inbound-read limit', 't': 'the host inbound-read limit'}.get(m.group(0)[0] if m.group(0)[0] in 'at' else '', 'host inbound-read limit'))
rule('prose', r'\b([Rr])ead path\b', lambda m: ('I' if m.group(1) == 'R' else 'i') + 'nbound-read limit')
rule('all', r'\bstall_(client_soc|soc_host|host_soc|dpa)\b', r'large_transfers_\1')
rule('all', r'"stall"', '"large-transfer-limit"', but=r'^crates/fabric|^services')
rule('all', r'\\"stall\\"', r'\\"large-transfer-limit\\"', but=r'^crates/fabric|^services')
rule('all', r'`stall`', '`large-transfer-limit`')
rule('all', r'\[stall\]', '[large_transfers]')
word('Stall', 'LargeTransferLimit', but=r'^crates/fabric|^services')
rule('prose', r'\bstalls\b', 'large-transfer limits', only=r'\.rs$', but=r'^crates/fabric|^services|^crates/twin')
rule('code', r'\bstalls\b', 'large_transfer_limits', but=r'^crates/fabric|^services')
word('stall_hop', 'large_transfer_hop')
rule('code', r'\bstall\b', 'limit', but=r'^crates/(fabric|twin)|^services')
rule('prose', r'\bregimes of large transfers\b', 'large-transfer limits')
rule('prose', r'\b([Tt])he regime of large transfers\b', r'\1he large-transfer limit')
rule('prose', r'\ba regime of large transfers\b', 'a large-transfer limit')
rule('prose', r'\bregime of large transfers\b', 'large-transfer limit')
rule('prose', r'\b[Ss]lower regimes\b', lambda m: m.group(0)[0].replace('s', 'l').replace('S', 'L') + 'arge-transfer limits')
rule('prose', r'\b([Aa]) slower regime\b', r'\1 large-transfer limit')
rule('prose', r'\bslower regime\b', 'large-transfer limit')
rule('all', r'\bregimes\b', 'limits')
rule('all', r"\bregime\b", 'limit')

# ---------------------------------------------------------------- contexts of the NIC: in-flight slots
SLOTS_NOT = r'^(lab/|crates/verbs/|crates/fabric/|crates/terminal/|services/|benches/|crates/conformance/)'
word('contexts_held', 'slots_held')
word('ContextSlots', 'SlotCalendars')
word('context_slots', 'slot_calendars')
word('take_context', 'take_slot')
word('ReservedBeyondContexts', 'ReservedBeyondSlots')
word('with_contexts', 'with_slots')
word('least_through_contexts', 'least_through_slots')
word('full_contexts', 'full_slots')
word('is_contexts', 'is_slots')
word('labelled_context', 'labelled_fabric')
rule('all', r'contexts_are_given', 'slots_are_given')
rule('all', r'wait_for_a_context_are', 'wait_for_a_slot_are')
rule('all', r'no_more_contexts_are', 'no_more_slots_are')
rule('all', r'share_the_contexts_of', 'share_the_slots_of')
rule('all', r'\bcontexts_of_more_endpoints', 'slots_of_more_endpoints')
rule('all', r'\bmodels/contexts\.md\b', 'models/inflight-slots.md')
rule('all', r'\[contexts\]\(contexts\.md\)', '[in-flight slots](inflight-slots.md)')
rule('all', r'\]\(contexts\.md', '](inflight-slots.md')
rule('all', r'\[contexts\]\(', '[in-flight slots](')
word('CONTEXTS', 'INFLIGHT_SLOTS')
rule('code', r'\bContexts\b', 'InflightSlots')
rule('prose', r'(?<=[`:\[])Contexts\b', 'InflightSlots')
rule('prose', r'\bContexts\b', 'In-flight slots', but=SLOTS_NOT)
rule('all', r'\bnic\.contexts\b', 'nic.inflight_slots')
rule('all', r'\}\.contexts\b', '}.inflight_slots', only=r'^crates/route/')
rule('all', r'`contexts`', '`inflight_slots`', but=r'^crates/capacity/')
rule('all', r'"contexts(-of|"|\\")', r'"inflight_slots\1', only=r'^crates/route/|^crates/twin/|^crates/evidence/|^crates/apps/|^crates/plan/')
rule('all', r'\bcontexts(\s*=\s*\{)', r'inflight_slots\1')
rule('all', r'"contexts =", "contxts ="', '"inflight_slots =", "inflihgt_slots ="')
rule('all', r'"contexts =" -> "contxts ="', '"inflight_slots =" -> "inflihgt_slots ="')
rule('all', r'\bcontxts\b', 'inflihgt_slots')
rule('all', r'"contexts"', '"inflight_slots"', only=r'^crates/(capacity|profile)/|^docs/|^tests/')
rule('all', r'`contexts`', '`inflight_slots`')
rule('prose', r'\bNIC contexts\b', 'in-flight slots')
rule('code', r'\bcontexts\b', 'inflight_slots', but=SLOTS_NOT)
rule('all', r'\{contexts(:\?)?\}', r'{inflight_slots\1}', but=SLOTS_NOT)
rule('prose', r'\bcontexts\b', 'in-flight slots', but=SLOTS_NOT)
IN_PROSE = r'^(crates/(profile|route|capacity|twin|evidence)/|crates/plan/tests/|crates/apps/tests/|docs/(?!lab|verbs)|README|ARCHITECTURE|CHANGELOG|evidence/|profiles/)'
RUST_CONTEXT = r'runtime|executor|_radius|waker|^$'
rule('prose', r'\b([Aa]) context\b', lambda m: m.group(1) + 'n in-flight slot', only=IN_PROSE, but=r'crates/twin/src/(world|backend)/')
rule('prose', r'\bcontext\b(?! of a role)', 'in-flight slot', only=IN_PROSE, but=r'crates/twin/src/(world|backend)/')

# ---------------------------------------------------------------- NIC
rule('all', r'\[adapter\]', '[ethernet]')
rule('all', r'`adapter`', '`ethernet`')
rule('all', r'\b(RDMA )network adapter\b', r'\1NIC')
rule('all', r'\bnetwork adapter\b', 'NIC')
rule('all', r'\b([Aa])n(\s+)(RDMA NIC)\b', r'\1n\2\3')
rule('all', r'\b([Aa])n(\s+)adapter\b', r'\1\2NIC')
word('adapters', 'NICs')
word('adapter', 'NIC')

# ---------------------------------------------------------------- DMA engine
rule('all', r'\bcopy-engine\b', 'dma-engine')
rule('all', r'\b[Cc]opy engine', 'DMA engine')

# ---------------------------------------------------------------- backend
KEEP_WORLD = r'(?<!hello )(?<!b" )(?<!real-)'
rule('all', KEEP_WORLD + r'\bworld\b', 'backend')
rule('all', r'\bWorld\b', 'Backend')
word('worlds', 'backends'); word('Worlds', 'Backends')
word('WORLD', 'BACKEND')
word('TwinWorld', 'TwinBackend'); word('WorldReport', 'BackendReport'); word('WorldOptions', 'BackendOptions')
rule('all', r'\bworlds_and_', 'backends_and_')
rule('all', r'_local_world\b', '_local_backend'); rule('all', r'_every_world\b', '_every_backend')

# ---------------------------------------------------------------- completion
rule('all', r'\btickets\b', 'awaited', only=r'^crates/verbs/examples/|^lab/run$')
rule('all', r'\b([Tt])ickets\.rs\b', 'completion.rs')
word('VerbsTicket', 'VerbsCompletion'); rule('code', r'\bTickets\b', 'CompletionTable'); word('Tickets', 'Completions')
word('Ticket', 'CompletionFuture', only=r'\.rs$'); word('Ticket', 'Completion')
rule('all', r'\b(fn )?ticket\(\)', r'\1completion_future()'); rule('code', r'(CompletionFuture, )ticket\b', r'\1completion_future')
word('tickets', 'completions'); word('ticket', 'completion')
rule('all', r'\ba_ticket_', 'a_completion_future_')

# ---------------------------------------------------------------- variant
NOT_RIVAL = r'^benches/|^docs/performance\.md$|^crates/twin/benches/|^crates/apps/benches/'
word('rivals_of', 'variants_of'); word('with_rivals', 'with_variants'); word('rival_set', 'variant_set')
word('rival_text', 'variant_text'); word('RivalReport', 'VariantReport')
rule('all', r'\ba_threshold_has_no_rival_that', 'a_threshold_has_no_reference_that')
rule('all', r'\brivals_are_refuted', 'variants_are_refuted'); rule('all', r'\ba_rival_under', 'a_variant_under')
rule('prose', r'\b([Aa]) rival mechanism\b', r'\1 variant of an open mechanism', but=NOT_RIVAL)
rule('prose', r'\bRival mechanisms\b', 'Variants of open mechanisms', but=NOT_RIVAL)
rule('prose', r'\brival mechanisms\b', 'variants of open mechanisms', but=NOT_RIVAL)
rule('prose', r'\brival mechanism\b', 'variant', but=NOT_RIVAL)
word('Rivals', 'Variants', but=NOT_RIVAL); word('rivals', 'variants', but=NOT_RIVAL)
word('Rival', 'Variant', but=NOT_RIVAL); word('rival', 'variant', but=NOT_RIVAL)

# ---------------------------------------------------------------- hops
HOPS = r'^crates/(profile|route)/.*\.rs$'
word('NoWay', 'NoHops'); word('no_way', 'no_hops')
rule('code', r'(\bmachine|\b(?:machine\([a-z"]+\)\s*\.unwrap\(\))|^\s+|\n\s+)\.way\(', r'\1.hops(', only=r'^crates/(profile|plan)/')
rule('code', r'\bfn way\b', 'fn hops', only=r'^crates/profile/src/topology\.rs$')
rule('all', r'\.way\((&?[a-z.]*nic|nic, |"|from, to|&machine\.nic)', r'.hops(\1', only=r'^crates/profile/|^crates/plan/src/advice/')
rule('all', r'(\n\s+\.)way\(from, to\)', r'\1hops(from, to)', only=r'^crates/route/')
rule('code', r'\bway\b', 'hops', only=r'^crates/profile/')
word('Way', 'HopList', only=r'^crates/route/.*\.rs$')
rule('code', r'\bways\b', 'hop_lists', only=r'^crates/route/')
rule('code', r'\bway\b', 'hop_list', only=r'^crates/route/')
rule('all', r'`ways`', '`hop_lists`', only=r'^crates/route/')
word('WAYS', 'LOG_ALTERNATIVES'); 
rule('code', r'\bway\b', 'alternative', only=r'^crates/(plan/src|apps)/')
rule('code', r'\bway\b', 'delay', only=r'^crates/fabric/src/')
rule('code', r'\bway\b', 'fetch', only=r'^crates/offpath/')
rule('code', r'\bway\b', 'attributes_set', only=r'^crates/verbs/src/')
rule('code', r'\bway\b', 'mode', only=r'^crates/verbs/examples/')
rule('code', r'\bway\b', 'route_of', only=r'^crates/plan/tests/')

# ---------------------------------------------------------------- applications that are implemented
rule('all', r'\bcoded-applications\b', 'applications')
rule('all', r"\b([Aa]) coded (application|system)\b", r'\1n application')
rule('all', r'\b(?:the )?[Cc]oded (application|system)s\b', lambda m: 'applications' if m.group(0)[0] in 'c' else ('the applications' if m.group(0)[0] == 't' else 'Applications'))
rule('all', r'\bcoded (application|system)\b', 'application')
rule('all', r'\bcoded (store|log|host|\{)', r'implemented \1')
rule('all', r'_coded_(store|log)_', r'_implemented_\1_'); rule('all', r'cannot_be_coded_is', 'cannot_be_implemented_is')
word('Coded', 'Implementation', only=r'\.rs$')
rule('all', r'(?<!child\(")(?<!child\(\\")\bcoded\b', 'implemented')

# ---------------------------------------------------------------- in flight
rule('all', r'\bunder_way\b', 'left', only=r'^crates/twin/tests/')
word('under_way', 'in_flight'); word('READS_UNDER_WAY', 'READS_IN_FLIGHT')
rule('all', r'\bunder way\b', 'in flight'); rule('all', r'\bUnder way\b', 'In flight')
rule('all', r'\bunder(\s+(?:///?|//!|#|\*)?\s*)way\b', r'in\1flight')

# ---------------------------------------------------------------- retransmitted, duplicated, partitioned, deadlock
rule('prose', r'\bsent again\b', 'retransmitted'); rule('prose', r'\bsends it again\b', 'retransmits it')
rule('prose', r'\bsends again\b', 'retransmits'); rule('prose', r'\bsending again\b', 'retransmitting')
rule('prose', r'\bto send again\b', 'to retransmit')
rule('prose', r'(lost, delayed, |flipped, cut, |What is )doubled\b', r'\1duplicated')
rule('all', r'lost_and_doubled_', 'lost_and_duplicated_')
word('parted', 'partitioned')
rule('all', r'\bstandstill_is_reported\b', 'deadlock_is_reported'); rule('all', r'\ba_standstill_names', 'a_deadlock_names')
word('Standstill', 'Deadlock'); word('standstill', 'deadlock')

# ---------------------------------------------------------------- injected bugs and checkers
rule('code', r'\bPlanted\b', 'InjectedBug', only=r'\.rs$'); rule('all', r'`Planted`', '`InjectedBug`')
rule('all', r'\bPlanted\b', 'Injected', but=r'\.rs$')
rule('all', r'--plant\b', '--inject-bug')
rule('all', r'"(plant|inject-bug)" =>', '"inject_bug" =>', only=r'completions\.rs$')
rule('code', r'\bplants\b', 'injects', only=r'\.rs$'); rule('code', r'\bplant\b', 'inject_bug', only=r'\.rs$')
rule('all', r'\{plant\}', '{inject_bug}')
TORTURE = r'torture|^crates/apps/'
rule('code', r'\bplanted\b', 'injected_bug', only=r'^crates/(apps|offpath)/')
rule('all', r'"planted"', '"injected_bug"', only=r'^docs/schemas/'); 
rule('prose', r'\bplanted:', 'injected bug:', only=TORTURE)
rule('all', r'\bplanted\b', 'injected')
rule('all', r'_planted_', '_injected_')
word('UnknownMistake', 'UnknownBug'); 
rule('all', r'finds_every_mistake', 'finds_every_bug'); rule('all', r'every_mistake_injected', 'every_bug_injected')
rule('code', r'\bmistake\b', 'bug', only=TORTURE); rule('code', r'\bmistakes\b', 'bugs', only=r'torture|commands/completions\.rs$')
rule('prose', r'\{mistake\}', '{bug}', only=TORTURE)
rule('prose', r'(?<!is a )\b([Mm])istake(s?)\b(?! that would)', lambda m: ('B' if m.group(1) == 'M' else 'b') + 'ug' + m.group(2), only=r'torture')
rule('code', r'\bjudge\b', 'check', only=r'^crates/(apps/src/torture/(log|store)|offpath/src/torture)|/torture\.rs$')
rule('code', r'\bjudge\b', 'accepts', only=r'linear\.rs$|^crates/capacity/')
rule('code', r'\bjudge\b', 'assess', only=r'^crates/(apps|plan)/tests/')
rule('all', r'it_judges_as', 'it_decides_as')
word('judges', 'checks', only=r'^crates/(apps|offpath)/.*torture'); word('judge', 'check', only=r'^crates/(apps|offpath)/.*torture|^docs/torture\.md$|^docs/schemas/torture')
rule('all', r'\bthe judges\b', 'the checkers', only=r'^docs/torture'); 
rule('all', r'\b[Tt]he judgement of what\b', 'the check of what', only=r'torture')

# ---------------------------------------------------------------- rendezvous, slot, observed step, run log
V = r'^crates/verbs/'
word('Meeting', 'RendezvousSockets', only=V)
rule('code', r'\bcore\.meeting\b', 'core.sockets', only=V); rule('code', r'\bown\.meeting\b', 'own.sockets', only=V)
rule('code', r'^(\s+)meeting(: RendezvousSockets)?,', r'\1sockets\2,', only=V); rule('code', r'(\n\s+)meeting(: RendezvousSockets)?,', r'\1sockets\2,', only=V)
rule('code', r'\blet meeting = RendezvousSockets', 'let sockets = RendezvousSockets', only=V)
word('meeting', 'rendezvous', only=V)
rule('prose', r'\bseat\b', 'slot', only=V); rule('prose', r'\bseats\b', 'slots', only=V)
word('SEATS_LAST', 'PAIR_SLOTS_LAST', only=V); word('Seat', 'PairSlot', only=V)
word('seats', 'pair_slots', only=V); word('seat', 'pair_slot', only=V)
word('Deed', 'ObservedStep'); word('deeds', 'observed_steps'); word('deed', 'observed_step')
CODED = r'^crates/plan/src/(coded|implemented)'
word('Told', 'RunLog', only=CODED); rule('code', r'(?<!\.)\btold\b(?!\()', 'run_log', only=CODED)
rule('code', r'(?<=[(,&|. ])told(?=[,:.;)| ])(?!\()', 'run_log', only=CODED + r'$^')
word('Told', 'Comparison', only=r'^crates/plan/src/check/compare'); 
word('Seen', 'ObservedRequest', only=CODED); word('Seen', 'ObservedGet', only=r'^crates/apps/src/kv/drive')
word('TOLD', 'PLANNED_AGAIN', only=r'^crates/plan/src/study')

# ---------------------------------------------------------------- texts
word('posted single', 'one doorbell per WQE')
rule('all', r'"known as"', '"provenance"', only=r'device\.rs$')
rule('prose', r',? and how sure that is\b', ', with confidence intervals')
rule('all', r'^(\| .*), and how sure that is', r'\1, with confidence intervals')
rule('all', r'\bgain_percent_ci95_(low|high)\b', r'gain_ci95_\1_percent')
UNCOUNTED = r'(?:evidence|TOML|knowledge|room|part|news|valid HTML|RESP|success|compression|JSON|HTML)'
NOTTHERE = r"(?<!here )(?<!there)"
rule('prose', NOTTHERE + r'\bis no (' + UNCOUNTED + r')\b', r'is not \1')
rule('prose', NOTTHERE + r'\b(is|are) no(\s+(?:///?|//!|#)?\s*)(longer|more|less|better|worse|higher|lower|other|such|narrower|wider|rarer|quicker|reason|question|matter)\b', r'\1 no\2\3')
rule('prose', NOTTHERE + r'\bis no (?!longer\b|more\b|less\b|better\b|worse\b|higher\b|lower\b|other\b|such\b|narrower\b|wider\b|slower\b|rarer\b|quicker\b|greater\b|need\b|use\b|doubt\b|place\b|link\b|station\b|way\b)([aeioAEIO])', r'is not an \1')
rule('prose', NOTTHERE + r'\bis no (?!longer\b|more\b|less\b|better\b|worse\b|higher\b|lower\b|other\b|such\b|narrower\b|wider\b|slower\b|rarer\b|quicker\b|greater\b|need\b|use\b|doubt\b)([a-zA-Z])', r'is not a \1')

# ---------------------------------------------------------------- articles
rule('prose', r'\b([Aa]) (injected bug|inbound-read|in-flight|implemented (?:store|log|host))', r'\1n \2')
rule('prose', r'\b([Aa])n (variant|backend|NIC|DMA|completion|deadlock|large-transfer|host inbound)', r'\1 \2')

# ---------------------------------------------------------------- files
MOVES = [
    (r'^docs/models/contexts\.md$', 'docs/models/inflight-slots.md'),
    (r'^docs/models/read-path\.md$', 'docs/models/inbound-reads.md'),
    (r'^docs/coded-applications\.md$', 'docs/applications.md'),
    (r'^profiles/overlays/no-read-path\.toml$', 'profiles/overlays/no-inbound-read-limit.toml'),
    (r'^crates/fabric/src/world\.rs$', 'crates/fabric/src/backend.rs'),
    (r'^crates/twin/src/world/', 'crates/twin/src/backend/'),
    (r'^crates/twin/tests/world\.rs$', 'crates/twin/tests/backend.rs'),
    (r'^crates/verbs/src/meeting\.rs$', 'crates/verbs/src/rendezvous.rs'),
    (r'^crates/verbs/src/ticket\.rs$', 'crates/verbs/src/completion.rs'),
    (r'^crates/plan/src/coded\.rs$', 'crates/plan/src/implemented.rs'),
    (r'^crates/plan/src/coded/', 'crates/plan/src/implemented/'),
    (r'^crates/plan/tests/coded\.rs$', 'crates/plan/tests/implemented.rs'),
]

# ---------------------------------------------------------------- placements by what they do
KV = [('A5Read', 'SocCacheRead'), ('A5Send', 'SocCacheSend'), ('A1', 'HostOneSided'), ('A2', 'SocLookup'), ('A3', 'SocIndex'), ('A4', 'SplitOneSided')]
LOG = [('A2AndA3', 'CardEngineAndHostWrite'), ('A1', 'CardRead'), ('A2', 'CardEngine'), ('A3', 'HostWrite')]
for old, new in KV:
    rule('all', rf'\bPlacement::{old}\b', f'Placement::{new}')
    rule('code', rf'(\n\s+){old}(?=,\s)', rf'\1{new}', only=r'^crates/apps/src/kv/')
for old, new in LOG:
    rule('all', rf'\b(Log)?Alternative::{old}\b', rf'\1Alternative::{new}')
    rule('code', rf'(\n\s+){old}(?=,\s)', rf'\1{new}', only=r'^crates/apps/src/replog/')
rule('prose', r'\bA5Read\b', 'A5-read'); rule('prose', r'\bA5Send\b', 'A5-send')
word('MEETING', 'RENDEZVOUS', only=V)
rule('all', r'"in-flight slots that the operation holds', '"In-flight slots that the operation holds')
word('sent_again', 'retransmitted')
word('contexst', 'inflihgt_slots')
