# The one build file, read by GNU make (GNUmakefile) and bmake (Makefile).
# Only the subset that both understand: = += ?= !=, ${X:.c=.o}, suffix rules.
# The suffix of an object is its flavour: .o hardened, .ao ASan and UBSan.

CC ?= cc
# make V= shows the whole commands
V ?= @
AR ?= ar
PKGS = libevent_core libbsd-overlay libcap-ng libseccomp jansson
WARN = -Wall -Wextra -Werror -Wshadow -Wpointer-arith -Wcast-qual \
	-Wmissing-prototypes -Wstrict-prototypes -Wwrite-strings -Wundef \
	-Wvla -Wno-unused-parameter -Wno-missing-field-initializers
# indirect jumps land where the compiler meant, where the machine can do that
BRANCH != case `${CC} -dumpmachine` in x86_64*) echo -fcf-protection=full ;; \
	aarch64*) echo -mbranch-protection=standard ;; esac
HARDEN = -O2 -g -fstack-protector-strong -fstack-clash-protection \
	${BRANCH} -ftrivial-auto-var-init=zero -fno-common \
	-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
SANITIZE = -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all \
	-fno-omit-frame-pointer -fno-common -DABX_SANITIZE
INCS = -I. -D_GNU_SOURCE -isystem /usr/include/bsd -DLIBBSD_OVERLAY
CFLAGS_ALL = -std=gnu11 -ffile-prefix-map=${SRCTOP}=. ${INCS} ${WARN}
PIE = -fPIE
LDHARD = -pie -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack \
	-Wl,--as-needed -Wl,--build-id=sha1

# Which libraries each program links is architecture: see README.
L_COMMON = -lbsd
L_EVENT = -levent_core
L_JAIL = -lseccomp -lcap-ng
L_JSON = -ljansson
L_HASH = -lbearssl
L_REGEX = -lpcre2-8
L_GZIP = -lz

# --- sources ---------------------------------------------------------------
# BASE is linked into the static launcher too: libc only.
BASE_SRC = common/wire.c common/imsg.c common/msg.c common/bpf.c
COMMON_SRC = common/args.c common/strlist.c common/payload.c \
	common/payload_ask.c common/payload_path.c \
	common/payload_exec.c common/payload_files.c common/payload_cover.c \
	common/payload_space.c common/ops.c common/codes.c \
	common/frame.c common/hash.c common/memfd.c common/late.c common/size.c \
	common/log.c common/glob.c \
	common/entry.c common/run_render.c
PROC_SRC = common/chan.c common/proc.c common/jail.c
# What walks over trees remember, in pathd and execd.
RECALL_SRC = common/recall.c common/stamp.c

POLICY_SRC = policy/model.c policy/findings.c policy/suggest.c policy/json.c \
	policy/tree.c policy/confkey.c policy/confcheck.c policy/confscope.c \
	policy/confrule.c policy/confceil.c policy/confexample.c policy/example.c \
	policy/words.c policy/confids.c policy/confauth.c policy/confopen.c policy/conflisten.c \
	policy/conffinish.c policy/confnew.c policy/config.c policy/preset.c policy/print.c \
	policy/keymap.c policy/lint.c policy/lintcmd.c policy/lintscript.c \
	policy/lintroot.c policy/lintshadow.c policy/lists.c \
	policy/selector.c policy/argv.c policy/shlex.c policy/envrule.c \
	policy/path.c policy/principal.c policy/scope.c policy/compile.c \
	policy/index.c policy/schema.c policy/denypass.c policy/bound.c \
	policy/command.c policy/caps.c policy/admit.c policy/url.c \
	policy/cands.c policy/session.c policy/slots.c policy/plan.c policy/decide.c \
	policy/conffilter.c policy/filter.c policy/filter_lex.c policy/filter_frame.c \
	policy/filter_redir.c policy/filter_word.c policy/filter_brace.c \
	policy/filter_dollar.c policy/filter_cmd.c policy/filter_run.c \
	policy/filter_param.c policy/filter_opt.c policy/filter_prog.c \
	policy/filter_lit.c \
	policy/filter_path.c policy/filter_match.c policy/filter_rules.c \
	policy/filter_flat.c policy/filter_rx.c policy/filter_view.c

LISTENER_SRC = listener/main.c listener/accept.c listener/ask.c \
	listener/auth.c listener/body.c listener/conn.c listener/conn_time.c \
	listener/digest.c listener/failures.c \
	listener/filter.c listener/get.c listener/host.c \
	listener/http_chunk.c listener/http_parse.c listener/http_reply.c \
	listener/hop.c \
	listener/frames.c listener/list.c listener/mon.c listener/obuf.c listener/peer.c \
	listener/pipe.c listener/pool.c \
	listener/put.c listener/range.c listener/rejects.c \
	listener/request.c listener/route.c listener/run.c \
	listener/send.c listener/watch.c listener/target.c

PATHD_SRC = pathd/main.c pathd/pool.c pathd/pool_worker.c pathd/task.c \
	pathd/worker.c pathd/put_job.c \
	pathd/list_job.c pathd/pack_job.c pathd/watch_job.c \
	pathd/drain.c pathd/filter.c ${RECALL_SRC} ${PATHD_PURE_SRC}

EXECD_SRC = execd/main.c execd/job.c execd/job_start.c \
	execd/job_launch.c execd/job_say.c execd/job_keep.c execd/absent.c \
	execd/session.c execd/box.c execd/spare.c execd/mover.c execd/clock.c execd/seen.c \
	execd/spawn.c execd/pump.c execd/spool.c execd/feed.c \
	execd/launch/ns.c execd/protect.c execd/nested.c execd/mounts.c execd/etc.c execd/filter.c \
	${RECALL_SRC} ${EXECD_PURE_SRC}

LAUNCH_SRC = execd/launch/launch.c execd/launch/super.c \
	execd/launch/ns.c execd/launch/init.c \
	execd/launch/landlock.c execd/launch/xl.c

MONITOR_SRC = monitor/main.c monitor/filter.c monitor/gate.c monitor/req.c \
	monitor/principal.c monitor/limits.c monitor/answer.c monitor/step.c \
	monitor/work.c monitor/work_files.c monitor/work_run.c \
	monitor/worker.c monitor/worker_files.c monitor/peers.c \
	monitor/core.c monitor/audit.c monitor/sink.c monitor/snap.c \
	monitor/control.c monitor/top.c \
	monitor/idem.c monitor/host.c monitor/proc.c monitor/proc_ops.c \
	monitor/proctab.c monitor/wstab.c monitor/wsfile.c \
	monitor/workspace.c monitor/ws_work.c monitor/ws_ops.c monitor/peerid.c monitor/load.c \
	monitor/confset.c monitor/confwire.c monitor/conffile.c monitor/confdirs.c

ABXD_SRC = monitor/abxd.c monitor/parent.c monitor/stop.c monitor/child.c \
	monitor/reload.c monitor/boot.c monitor/spawn.c \
	monitor/sock.c monitor/groups.c common/cg.c

CTL_SRC = monitor/ctl/main.c monitor/ctl/show.c monitor/ctl/check.c \
	monitor/ctl/ops.c monitor/ctl/hash_token.c monitor/ctl/explain.c \
	monitor/ctl/describe.c monitor/ctl/filter.c \
	monitor/ctl/explain_out.c \
	monitor/ctl/facts.c monitor/ctl/control.c monitor/ctl/doctor.c monitor/ctl/probe.c \
	monitor/ctl/client.c monitor/ctl/where.c monitor/ctl/resp.c \
	monitor/ctl/sse.c monitor/ctl/bar.c monitor/ctl/ls.c \
	monitor/ctl/get.c monitor/ctl/put.c monitor/ctl/change.c \
	monitor/ctl/run.c monitor/ctl/run_follow.c monitor/ctl/top.c \
	monitor/confset.c monitor/confwire.c monitor/conffile.c \
	monitor/confdirs.c \
	pathd/walk.c pathd/steps.c pathd/beneath.c common/cg.c

# Pure parts of the programs that the unit tests link.
LISTENER_PURE_SRC = listener/hop.c \
	listener/auth.c listener/body.c listener/digest.c listener/failures.c \
	listener/host.c listener/http_chunk.c listener/http_parse.c \
	listener/http_reply.c listener/obuf.c listener/range.c \
	listener/route.c listener/target.c
MONITOR_PURE_SRC = monitor/sink.c monitor/gate.c monitor/proctab.c monitor/wstab.c \
	monitor/wsfile.c \
	monitor/conffile.c monitor/confdirs.c monitor/ctl/resp.c monitor/ctl/sse.c
PATHD_PURE_SRC = pathd/beneath.c pathd/walk.c pathd/steps.c pathd/roots.c pathd/deny.c \
	pathd/parents.c pathd/tree.c pathd/dir.c pathd/journal.c pathd/put.c \
	pathd/list.c pathd/get.c pathd/sight.c pathd/stage.c pathd/copy.c \
	pathd/replace.c pathd/udiff.c pathd/edit.c pathd/framer.c \
	pathd/search.c pathd/needle.c pathd/denied.c pathd/survey.c pathd/pack.c \
	pathd/tar_put.c pathd/tar_get.c pathd/tar_ext.c pathd/gz.c \
	pathd/unpack.c pathd/import.c pathd/space.c pathd/undo.c \
	pathd/watch.c pathd/mounts.c
EXECD_PURE_SRC = common/cg.c execd/cgroup.c \
	execd/place.c execd/profile.c execd/appeared.c execd/keep.c execd/ring.c \
	execd/known.c execd/look.c execd/launch/xl.c

UNIT_SRC = regress/unit/hop.c regress/unit/sink.c \
	regress/unit/filter.c regress/unit/filter_conf.c \
	regress/unit/http_parse.c regress/unit/target.c \
	regress/unit/digest.c regress/unit/hash.c \
	regress/unit/body.c regress/unit/http_reply.c \
	regress/unit/run_render.c regress/unit/listener.c \
	regress/unit/json.c regress/unit/many.c \
	regress/unit/conf.c regress/unit/conf_world.c regress/unit/conf_roots.c \
	regress/unit/glob.c regress/unit/late.c regress/unit/imsg.c \
	regress/unit/size.c regress/unit/shlex.c \
	regress/unit/argv.c regress/unit/selector.c regress/unit/decide.c \
	regress/unit/engine.c \
	regress/unit/wire.c regress/unit/payload.c regress/unit/gate.c regress/unit/entry.c \
	regress/unit/conffile.c regress/unit/confdirs.c \
	regress/unit/words.c regress/unit/policy_prop.c regress/unit/codes.c regress/unit/url.c \
	regress/unit/walk.c regress/unit/beneath.c regress/unit/pathd_put.c \
	regress/unit/pathd_dir.c regress/unit/pathd_proto.c \
	regress/unit/pathd_worker.c \
	regress/unit/pathd_copy.c regress/unit/pathd_edit.c \
	regress/unit/pathd_search.c regress/unit/pathd_import.c \
	regress/unit/pathd_reader.c \
	regress/unit/pathd_pack.c regress/unit/tar.c \
	regress/unit/space.c regress/unit/mounts.c \
	regress/unit/denied.c regress/unit/execd_keep.c regress/unit/execd_ring.c \
	regress/unit/known.c regress/unit/look.c regress/unit/survey.c \
	regress/unit/proctab.c regress/unit/wstab.c \
	regress/unit/wsfile.c regress/unit/ctl_resp.c \
	regress/unit/execd_profile.c \
	regress/unit/cgroup.c \
	regress/unit/execd_xl.c

# --- objects ---------------------------------------------------------------
CORE_O = ${BASE_SRC:.c=.o} ${COMMON_SRC:.c=.o}
PROC_O = ${PROC_SRC:.c=.o}
POLICY_O = ${POLICY_SRC:.c=.o}
LISTENER_O = ${LISTENER_SRC:.c=.o}
PATHD_O = ${PATHD_SRC:.c=.o}
EXECD_O = ${EXECD_SRC:.c=.o}
LAUNCH_O = ${LAUNCH_SRC:.c=.o} ${BASE_SRC:.c=.o}
MONITOR_O = ${MONITOR_SRC:.c=.o}
ABXD_O = ${ABXD_SRC:.c=.o}
CTL_O = ${CTL_SRC:.c=.o}
CORE_AO = ${BASE_SRC:.c=.ao} ${COMMON_SRC:.c=.ao}
PROC_AO = ${PROC_SRC:.c=.ao}
POLICY_AO = ${POLICY_SRC:.c=.ao}
LISTENER_AO = ${LISTENER_SRC:.c=.ao}
PATHD_AO = ${PATHD_SRC:.c=.ao}
EXECD_AO = ${EXECD_SRC:.c=.ao}
LAUNCH_UO = ${LAUNCH_SRC:.c=.uo} ${BASE_SRC:.c=.uo}
MONITOR_AO = ${MONITOR_SRC:.c=.ao}
ABXD_AO = ${ABXD_SRC:.c=.ao}
CTL_AO = ${CTL_SRC:.c=.ao}

B = build
A = build/asan
PROGS = $B/abxd $B/abx-listener $B/abx-monitor $B/abx-pathd $B/abx-execd \
	$B/abx-launch $B/abxctl
APROGS = $A/abxd $A/abx-listener $A/abx-monitor $A/abx-pathd $A/abx-execd \
	$A/abx-launch $A/abxctl
ALL_SRC = ${BASE_SRC} ${COMMON_SRC} ${PROC_SRC} ${POLICY_SRC} \
	${LISTENER_SRC} ${PATHD_SRC} ${EXECD_SRC} ${LAUNCH_SRC} \
	${MONITOR_SRC} ${ABXD_SRC} ${CTL_SRC}
DEPS = ${ALL_SRC:.c=.o.d} ${ALL_SRC:.c=.ao.d}

all: ${PROGS}
asan: ${APROGS}

.SUFFIXES: .c .o .ao .uo
.c.o:
	@echo "  CC $<"
	${V}${CC} ${CFLAGS_ALL} ${HARDEN} ${PIE} ${CFLAGS_EXTRA} -MMD -MP \
	    -MF $@.d -c $< -o $@
.c.ao:
	@echo "  CC $< (sanitizers)"
	${V}${CC} ${CFLAGS_ALL} ${SANITIZE} ${PIE} ${CFLAGS_EXTRA} -MMD -MP \
	    -MF $@.d -c $< -o $@
.c.uo:
	@echo "  CC $< (sanitizers)"
	${V}${CC} ${CFLAGS_ALL} -O1 -g -fsanitize=undefined \
	    -fno-sanitize-recover=all -DABX_SANITIZE ${PIE} -MMD -MP \
	    -MF $@.d -c $< -o $@

# --- programs, hardened ----------------------------------------------------
LINK = ${V}echo "  LD $@"; ${CC} ${HARDEN} ${LDHARD} ${LDFLAGS_EXTRA} -o $@
$B/abxd: ${ABXD_O} ${CORE_O} ${PROC_O}
	@mkdir -p $B
	${LINK} ${ABXD_O} ${CORE_O} ${PROC_O} ${L_EVENT} ${L_JAIL} \
	    ${L_HASH} ${L_COMMON}
$B/abx-listener: ${LISTENER_O} ${CORE_O} ${PROC_O}
	@mkdir -p $B
	${LINK} ${LISTENER_O} ${CORE_O} ${PROC_O} ${L_EVENT} ${L_JAIL} \
	    ${L_JSON} ${L_HASH} ${L_COMMON}
$B/abx-monitor: ${MONITOR_O} ${POLICY_O} ${CORE_O} ${PROC_O}
	@mkdir -p $B
	${LINK} ${MONITOR_O} ${POLICY_O} ${CORE_O} ${PROC_O} ${L_EVENT} \
	    ${L_JAIL} ${L_JSON} ${L_HASH} ${L_REGEX} ${L_COMMON}
$B/abx-pathd: ${PATHD_O} ${CORE_O} ${PROC_O}
	@mkdir -p $B
	${LINK} ${PATHD_O} ${CORE_O} ${PROC_O} ${L_EVENT} ${L_JAIL} \
	    ${L_HASH} ${L_REGEX} ${L_GZIP} ${L_COMMON}
$B/abx-execd: ${EXECD_O} ${CORE_O} ${PROC_O}
	@mkdir -p $B
	${LINK} ${EXECD_O} ${CORE_O} ${PROC_O} ${L_EVENT} ${L_JAIL} \
	    ${L_HASH} ${L_COMMON}
$B/abx-launch: ${LAUNCH_O}
	@mkdir -p $B
	${CC} ${HARDEN} -static-pie -Wl,-z,relro -Wl,-z,now \
	    -Wl,-z,noexecstack -Wl,--build-id=sha1 -o $@ ${LAUNCH_O}
$B/abxctl: ${CTL_O} ${POLICY_O} ${CORE_O} ${PROC_O}
	@mkdir -p $B
	${LINK} ${CTL_O} ${POLICY_O} ${CORE_O} ${PROC_O} ${L_EVENT} \
	    ${L_JAIL} ${L_JSON} ${L_HASH} ${L_REGEX} ${L_COMMON}

# --- programs, ASan and UBSan ----------------------------------------------
ALINK = ${V}echo "  LD $@"; ${CC} ${SANITIZE} -pie -o $@
$A/abxd: ${ABXD_AO} ${CORE_AO} ${PROC_AO}
	@mkdir -p $A
	${ALINK} ${ABXD_AO} ${CORE_AO} ${PROC_AO} ${L_EVENT} ${L_JAIL} \
	    ${L_HASH} ${L_COMMON}
$A/abx-listener: ${LISTENER_AO} ${CORE_AO} ${PROC_AO}
	@mkdir -p $A
	${ALINK} ${LISTENER_AO} ${CORE_AO} ${PROC_AO} ${L_EVENT} ${L_JAIL} \
	    ${L_JSON} ${L_HASH} ${L_COMMON}
$A/abx-monitor: ${MONITOR_AO} ${POLICY_AO} ${CORE_AO} ${PROC_AO}
	@mkdir -p $A
	${ALINK} ${MONITOR_AO} ${POLICY_AO} ${CORE_AO} ${PROC_AO} \
	    ${L_EVENT} ${L_JAIL} ${L_JSON} ${L_HASH} ${L_REGEX} ${L_COMMON}
$A/abx-pathd: ${PATHD_AO} ${CORE_AO} ${PROC_AO}
	@mkdir -p $A
	${ALINK} ${PATHD_AO} ${CORE_AO} ${PROC_AO} ${L_EVENT} ${L_JAIL} \
	    ${L_HASH} ${L_REGEX} ${L_GZIP} ${L_COMMON}
$A/abx-execd: ${EXECD_AO} ${CORE_AO} ${PROC_AO}
	@mkdir -p $A
	${ALINK} ${EXECD_AO} ${CORE_AO} ${PROC_AO} ${L_EVENT} ${L_JAIL} \
	    ${L_HASH} ${L_COMMON}
$A/abx-launch: ${LAUNCH_UO}
	@mkdir -p $A
	${CC} -fsanitize=undefined -pie -o $@ ${LAUNCH_UO}
$A/abxctl: ${CTL_AO} ${POLICY_AO} ${CORE_AO} ${PROC_AO}
	@mkdir -p $A
	${ALINK} ${CTL_AO} ${POLICY_AO} ${CORE_AO} ${PROC_AO} ${L_EVENT} \
	    ${L_JAIL} ${L_JSON} ${L_HASH} ${L_REGEX} ${L_COMMON}

# --- programs whose calls can be made to fail, for test_faulty ---------------
FAULT_O = regress/integration/fault.o
F = build/fault
DEPS += ${FAULT_O:.o=.o.d}
$F/abxd: ${ABXD_O} ${CORE_O} ${PROC_O} ${FAULT_O}
	@mkdir -p $F
	${LINK} ${ABXD_O} ${CORE_O} ${PROC_O} ${FAULT_O} ${L_EVENT} \
	    ${L_JAIL} ${L_HASH} ${L_COMMON}
$F/abx-listener: ${LISTENER_O} ${CORE_O} ${PROC_O} ${FAULT_O}
	@mkdir -p $F
	${LINK} ${LISTENER_O} ${CORE_O} ${PROC_O} ${FAULT_O} ${L_EVENT} \
	    ${L_JAIL} ${L_JSON} ${L_HASH} ${L_COMMON}
$F/abx-monitor: ${MONITOR_O} ${POLICY_O} ${CORE_O} ${PROC_O} ${FAULT_O}
	@mkdir -p $F
	${LINK} ${MONITOR_O} ${POLICY_O} ${CORE_O} ${PROC_O} ${FAULT_O} \
	    ${L_EVENT} ${L_JAIL} ${L_JSON} ${L_HASH} ${L_REGEX} ${L_COMMON}
$F/abx-pathd: ${PATHD_O} ${CORE_O} ${PROC_O} ${FAULT_O}
	@mkdir -p $F
	${LINK} ${PATHD_O} ${CORE_O} ${PROC_O} ${FAULT_O} ${L_EVENT} \
	    ${L_JAIL} ${L_HASH} ${L_REGEX} ${L_GZIP} ${L_COMMON}
$F/abx-execd: ${EXECD_O} ${CORE_O} ${PROC_O} ${FAULT_O}
	@mkdir -p $F
	${LINK} ${EXECD_O} ${CORE_O} ${PROC_O} ${FAULT_O} ${L_EVENT} \
	    ${L_JAIL} ${L_HASH} ${L_COMMON}
$F/abx-launch: $B/abx-launch
	@mkdir -p $F
	@cp $B/abx-launch $@
$F/abxctl: $B/abxctl
	@mkdir -p $F
	@cp $B/abxctl $@
faulty: $F/abxd $F/abx-listener $F/abx-monitor $F/abx-pathd $F/abx-execd \
	$F/abx-launch $F/abxctl

# --- one process alone, with a stand-in for the others ------------------------
DRIVE_O = regress/privsep/execd_drive.o regress/privsep/execd_peer.o \
	regress/privsep/drive_run.o regress/privsep/drive_box.o \
	regress/privsep/drive_session.o regress/privsep/drive_many.o \
	regress/privsep/drive_launch.o regress/privsep/drive_groups.o \
	regress/privsep/drive_joint.o \
	execd/launch/xl.o
DEPS += ${DRIVE_O:.o=.o.d}
ROGUE_O = regress/privsep/rogue.o execd/launch/xl.o
DEPS += regress/privsep/rogue.o.d
$B/regress/rogue: ${ROGUE_O} ${CORE_O}
	@mkdir -p $B/regress
	${LINK} ${ROGUE_O} ${CORE_O} ${L_HASH} ${L_COMMON}
$B/regress/execd_drive: ${DRIVE_O} ${CORE_O} $B/regress/inside $B/regress/rogue \
	$B/abx-execd $B/abx-launch
	@mkdir -p $B/regress
	${LINK} ${DRIVE_O} ${CORE_O} ${L_HASH} ${L_COMMON}
# Tries everything inside of a sandbox; needs nothing that lies there.
INSIDE_O = regress/inside/main.o regress/inside/calls.o \
	regress/inside/sockets.o regress/inside/places.o \
	regress/inside/limits.o
DEPS += ${INSIDE_O:.o=.o.d}
$B/regress/inside: ${INSIDE_O}
	@echo "  LD $@"
	@mkdir -p $B/regress
	${V}${CC} ${HARDEN} -static-pie -o $@ ${INSIDE_O}

$B/regress/decide: regress/bench/decide.o ${POLICY_O} ${CORE_O}
	@mkdir -p $B/regress
	${LINK} regress/bench/decide.o ${POLICY_O} ${CORE_O} ${L_REGEX} ${L_HASH} \
	    ${L_COMMON}

# Tables of abx-http(7); "make manuals" writes the page anew.
$B/mantables: man/tables.o common/ops.o common/codes.o common/wire.o
	@mkdir -p $B
	${LINK} man/tables.o common/ops.o common/codes.o common/wire.o ${L_COMMON}
DEPS += man/tables.o.d
manuals: $B/mantables
	@sh man/http.sh >$B/abx-http.7
	@cmp -s $B/abx-http.7 man/abx-http.7 || cp $B/abx-http.7 man/abx-http.7

# --- unit tests: built with the sanitizers, run by "make unit" --------------
# Everything pure goes into one archive, so a test links only what it uses;
# and what tests share.
UNIT_LIB_SRC = regress/unit/filter_ask.c regress/unit/policy_ask.c regress/unit/policy_gen.c
PURE_AO = ${UNIT_LIB_SRC:.c=.ao} ${CORE_AO} ${POLICY_AO} ${LISTENER_PURE_SRC:.c=.ao} \
	${MONITOR_PURE_SRC:.c=.ao} ${PATHD_PURE_SRC:.c=.ao} ${EXECD_PURE_SRC:.c=.ao} \
	${RECALL_SRC:.c=.ao} \
	common/chan.ao
$A/libpure.a: ${PURE_AO}
	@mkdir -p $A
	rm -f $@
	${AR} rcD $@ ${PURE_AO}
UNIT_AO = ${UNIT_SRC:.c=.ao}
UNIT_BIN = ${UNIT_SRC:.c=.t}
.SUFFIXES: .t
.ao.t:
	${CC} ${SANITIZE} -pie -o $@ $< $A/libpure.a -lcmocka ${L_EVENT} \
	    ${L_JSON} ${L_HASH} ${L_REGEX} ${L_GZIP} ${L_JAIL} ${L_COMMON}
${UNIT_BIN}: $A/libpure.a

# The same tests without the sanitizers, for valgrind.
PURE_O = ${PURE_AO:.ao=.o}
$B/libpure.a: ${PURE_O}
	@mkdir -p $B
	rm -f $@
	${AR} rcD $@ ${PURE_O}
PLAIN_BIN = ${UNIT_SRC:.c=.vt}
.SUFFIXES: .vt
.o.vt:
	${LINK} $< $B/libpure.a -lcmocka ${L_EVENT} ${L_JSON} ${L_HASH} \
	    ${L_REGEX} ${L_GZIP} ${L_JAIL} ${L_COMMON}
${PLAIN_BIN}: $B/libpure.a
unit-plain: ${PLAIN_BIN}

# --- front door: set-up, demo, checks, installation -------------------------
# What must come before a compilation is an earlier line of a recipe and not a
# prerequisite, so that the order holds with -j too.
PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
LIBEXEC = ${PREFIX}/libexec/agent-sandbox
DOCDIR = ${PREFIX}/share/doc/agent-sandbox
MAN5 = man/server.json.5
MAN7 = man/abx-command-policy.7 man/abx-http.7 man/abx-policy.7 \
	man/abx-privsep.7 man/abx-sandbox.7
MAN8 = man/abxd.8 man/abxctl.8
DEPS += ${LAUNCH_SRC:.c=.uo.d} ${BASE_SRC:.c=.uo.d} ${UNIT_SRC:.c=.ao.d} ${UNIT_SRC:.c=.o.d} \
	${UNIT_LIB_SRC:.c=.ao.d} ${UNIT_LIB_SRC:.c=.o.d}

.PHONY: manuals unit-plain faulty all asan deps users demo check unit lint format install clean

deps:
	@sh common/deps.sh

users:
	@sh common/users.sh

demo:
	@sh common/deps.sh demo
	@${MAKE} all
	@test "$$(id -u)" != 0 || sh common/users.sh
	@sh regress/demo.sh

check:
	@sh common/deps.sh
	@${MAKE} all asan
	@test "$$(id -u)" != 0 || sh common/users.sh
	@MAKE="${MAKE}" regress/run

# Against nginx, sandbox-agent, bubblewrap: ratios in one run.
bench: all $B/regress/decide
	@$B/regress/decide
	@python3 regress/bench/bench.py

unit: ${UNIT_BIN}
	@rc=0; for t in ${UNIT_BIN}; do ./$$t || rc=1; done; exit $$rc

lint: all $B/mantables
	@sh regress/lint.sh

format:
	@find common listener monitor pathd execd policy regress \
	    -name '*.[ch]' -exec clang-format -i {} +

install: all
	install -d -m 755 ${DESTDIR}${PREFIX}/sbin ${DESTDIR}${PREFIX}/bin \
	    ${DESTDIR}${LIBEXEC} ${DESTDIR}${PREFIX}/share/man/man5 \
	    ${DESTDIR}${PREFIX}/share/man/man7 \
	    ${DESTDIR}${PREFIX}/share/man/man8 ${DESTDIR}${DOCDIR}/examples \
	    ${DESTDIR}${PREFIX}/lib/systemd/system \
	    ${DESTDIR}${PREFIX}/lib/sysusers.d \
	    ${DESTDIR}${PREFIX}/lib/tmpfiles.d \
	    ${DESTDIR}${SYSCONFDIR}/agent-sandbox
	install -m 755 $B/abxd ${DESTDIR}${PREFIX}/sbin/
	install -m 755 $B/abxctl ${DESTDIR}${PREFIX}/bin/
	install -m 755 $B/abx-listener $B/abx-monitor $B/abx-pathd \
	    $B/abx-execd $B/abx-launch ${DESTDIR}${LIBEXEC}/
	install -m 644 ${MAN5} ${DESTDIR}${PREFIX}/share/man/man5/
	install -m 644 ${MAN7} ${DESTDIR}${PREFIX}/share/man/man7/
	install -m 644 ${MAN8} ${DESTDIR}${PREFIX}/share/man/man8/
	install -m 644 README SECURITY LICENSE ${DESTDIR}${DOCDIR}/
	install -m 644 etc/examples/*.json ${DESTDIR}${DOCDIR}/examples/
	sed -e 's,/usr/sbin/abxd,${PREFIX}/sbin/abxd,' \
	    -e 's,/usr/bin/abxctl,${PREFIX}/bin/abxctl,' \
	    etc/agent-sandbox.service >$B/agent-sandbox.service
	install -m 644 $B/agent-sandbox.service etc/agent-sandbox.socket \
	    ${DESTDIR}${PREFIX}/lib/systemd/system/
	install -m 644 etc/sysusers.d/agent-sandbox.conf \
	    ${DESTDIR}${PREFIX}/lib/sysusers.d/
	install -m 644 etc/tmpfiles.d/agent-sandbox.conf \
	    ${DESTDIR}${PREFIX}/lib/tmpfiles.d/
	test -e ${DESTDIR}${SYSCONFDIR}/agent-sandbox/server.json || \
	    install -m 644 etc/server.json \
	    ${DESTDIR}${SYSCONFDIR}/agent-sandbox/

clean:
	rm -rf $B
	find common listener man monitor pathd execd policy regress \( \
	    -name '*.o' -o -name '*.[auf]o' -o -name '*.[auf]o.d' -o \
	    -name '*.o.d' -o -name '*.t' -o -name '*.vt' -o -name '*.fz' \) -exec rm -f {} +

# --- fuzz targets: clang with libFuzzer, see regress/fuzz/fuzz.h --------------
# fuzz-build builds them all, fuzz-replay feeds each its corpus once (quick,
# part of the tests), fuzz lets each look for SECONDS.  What is found goes to
# build/fuzz/.
FUZZ_CC ?= clang
SECONDS ?= 10
FUZZ_NAMES = argv body codec conf conn ctl_resp edit filter frame gate glob http_chunk http_fields \
	http_head http_reply import imsg json keep monitor path payload policy ring \
	run_render search shlex size tar target url walk wire wstab
FUZZ_SRC = regress/fuzz/argv.c regress/fuzz/body.c regress/fuzz/codec.c \
	regress/fuzz/conf.c regress/fuzz/conn.c regress/fuzz/ctl_resp.c \
	regress/fuzz/edit.c regress/fuzz/filter.c \
	regress/fuzz/frame.c regress/fuzz/gate.c \
	regress/fuzz/glob.c regress/fuzz/http_chunk.c \
	regress/fuzz/http_fields.c regress/fuzz/http_head.c \
	regress/fuzz/http_reply.c regress/fuzz/import.c \
	regress/fuzz/imsg.c regress/fuzz/json.c \
	regress/fuzz/keep.c regress/fuzz/monitor.c regress/fuzz/path.c \
	regress/fuzz/payload.c regress/fuzz/policy.c regress/fuzz/ring.c \
	regress/fuzz/run_render.c regress/fuzz/search.c \
	regress/fuzz/shlex.c regress/fuzz/size.c regress/fuzz/tar.c \
	regress/fuzz/target.c regress/fuzz/url.c regress/fuzz/walk.c \
	regress/fuzz/wire.c regress/fuzz/wstab.c
FUZZ_LIB_SRC = ${BASE_SRC} ${COMMON_SRC} ${POLICY_SRC} \
	${LISTENER_SRC:listener/main.c=} ${MONITOR_SRC:monitor/main.c=} \
	monitor/ctl/resp.c monitor/ctl/sse.c \
	${PATHD_PURE_SRC} ${EXECD_PURE_SRC} ${RECALL_SRC} regress/fuzz/fuzz.c regress/fuzz/model.c \
	regress/fuzz/decide.c regress/fuzz/responses.c
FUZZ_BIN = ${FUZZ_SRC:.c=.fz}
FUZZ_FO = ${FUZZ_SRC:.c=.fo}
FUZZ_LIB_FO = ${FUZZ_LIB_SRC:.c=.fo}
FUZZ_FLAGS = -O1 -g -fno-omit-frame-pointer -fno-common \
	-fno-sanitize-recover=all -DABX_SANITIZE
DEPS += ${FUZZ_SRC:.c=.fo.d} ${FUZZ_LIB_SRC:.c=.fo.d} \
	regress/fuzz/monitor_heard.fo.d regress/fuzz/monitor_parent.fo.d

.SUFFIXES: .fo .fz
.c.fo:
	@echo "  CC $< (fuzzer)"
	${V}${FUZZ_CC} ${CFLAGS_ALL} ${FUZZ_FLAGS} ${PIE} \
	    -fsanitize=fuzzer-no-link,address,undefined -MMD -MP -MF $@.d \
	    -c $< -o $@
.fo.fz:
	@echo "  LD $@"
	${V}${FUZZ_CC} ${FUZZ_FLAGS} -fsanitize=fuzzer,address,undefined -pie \
	    -o $@ $< $B/fuzz/libfuzz.a ${L_EVENT} ${L_JSON} ${L_HASH} \
	    ${L_REGEX} ${L_GZIP} ${L_JAIL} ${L_COMMON}
$B/fuzz/libfuzz.a: ${FUZZ_LIB_FO}
	@mkdir -p $B/fuzz
	@rm -f $@
	${V}${AR} rcD $@ ${FUZZ_LIB_FO}
# A target of several files.
FUZZ_MONITOR_FO = regress/fuzz/monitor.fo regress/fuzz/monitor_heard.fo \
	regress/fuzz/monitor_parent.fo
regress/fuzz/monitor.fz: ${FUZZ_MONITOR_FO}
	@echo "  LD $@"
	${V}${FUZZ_CC} ${FUZZ_FLAGS} -fsanitize=fuzzer,address,undefined -pie \
	    -o $@ ${FUZZ_MONITOR_FO} $B/fuzz/libfuzz.a ${L_EVENT} ${L_JSON} \
	    ${L_HASH} ${L_REGEX} ${L_GZIP} ${L_JAIL} ${L_COMMON}
# An object that make would delete as a step on the way would be built again.
${FUZZ_BIN}: $B/fuzz/libfuzz.a ${FUZZ_FO}

.PHONY: fuzz-build fuzz fuzz-replay
fuzz-build: ${FUZZ_BIN}

fuzz: ${FUZZ_BIN}
	@sh regress/fuzz/run.sh fuzz ${SECONDS} ${FUZZ_NAMES}

fuzz-replay: ${FUZZ_BIN}
	@sh regress/fuzz/run.sh replay ${FUZZ_NAMES}

# --- privsep: proofs that one process gone wrong stays alone -------------------
# Built with the hardened flags: the sanitizers' runtime makes filters
# meaningless, and the programs under test are named when a test is run.
STAGE_SRC = regress/privsep/stage.c regress/privsep/stage_eyes.c
TRIP_SRC = regress/privsep/trip.c regress/privsep/trip_calls.c \
	regress/privsep/trip_live.c regress/privsep/trip_libc.c \
	regress/privsep/trip_force.c
STAGE_O = ${STAGE_SRC:.c=.o}
TRIP_O = ${TRIP_SRC:.c=.o} ${STAGE_O} listener/filter.o monitor/filter.o \
	pathd/filter.o execd/filter.o execd/launch/xl.o common/jail.o
DEPS += ${STAGE_SRC:.c=.o.d} ${TRIP_SRC:.c=.o.d}
$B/regress/trip: ${TRIP_O} ${CORE_O}
	@mkdir -p $B/regress
	${LINK} ${TRIP_O} ${CORE_O} -lcmocka -lseccomp ${L_HASH} ${L_COMMON}
EVIL_SRC = regress/privsep/evil.c regress/privsep/evil_matrix.c \
	regress/privsep/evil_packets.c regress/privsep/evil_lies.c \
	regress/privsep/evil_service.c regress/privsep/puppet.c \
	regress/privsep/evil_solo.c regress/privsep/solo.c \
	regress/privsep/evil_control.c \
	regress/privsep/cells.c regress/privsep/lab.c \
	regress/privsep/lab_parts.c regress/privsep/well.c
EVIL_O = ${EVIL_SRC:.c=.o} ${STAGE_O} monitor/spawn.o common/jail.o
DEPS += ${EVIL_SRC:.c=.o.d}
$B/regress/evil: ${EVIL_O} ${CORE_O} $B/regress/standin
	@mkdir -p $B/regress
	${LINK} ${EVIL_O} ${CORE_O} -lcmocka -lseccomp ${L_HASH} ${L_COMMON}
$B/regress/standin: regress/privsep/standin.o
	@mkdir -p $B/regress
	${LINK} regress/privsep/standin.o
RACE_SRC = regress/race/race.c regress/race/client.c regress/race/attack.c
RACE_O = ${RACE_SRC:.c=.o} ${STAGE_O}
DEPS += ${RACE_SRC:.c=.o.d} regress/race/no_openat2.o.d
$B/regress/race: ${RACE_O} $B/regress/no_openat2
	@mkdir -p $B/regress
	${LINK} ${RACE_O} -lcmocka ${L_COMMON}
$B/regress/no_openat2: regress/race/no_openat2.o
	@mkdir -p $B/regress
	${LINK} regress/race/no_openat2.o
