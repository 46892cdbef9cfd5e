#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Spells the dangers of the floor in other ways, as people and programs that
mean to get past a filter do: regress/filter/spell.py > regress/filter/dangers.txt

It knows nothing of the filter: each rewriting is true of every POSIX shell or
of bash, and most are checked here by running the spelling of a harmless
command (spell.py --check).
"""
import base64
import os
import random
import shlex
import subprocess
import sys
import tempfile

DANGERS = [
    "rm -rf /", "rm -fr /*", "rm -r -f /", "rm --recursive --force /",
    "rm -rf --no-preserve-root /", "rm -Rf //", "rm -rf /tmp/x /",
    "dd if=/dev/zero of=/dev/sda bs=1M", "dd if=img of=/dev/nvme0n1",
    "mkfs.ext4 /dev/sdb1", "mkfs -t xfs /dev/vda", "mkswap /dev/sdb2",
    "wipefs -a /dev/sda", "blkdiscard /dev/nvme0n1", "shred -n 3 /dev/xvda",
    "tee /dev/sda", "cp img /dev/sda", "mv img /dev/sdb",
    "truncate -s 0 /dev/sda",
]
HARMLESS = "printf a%sc/d b"  # and what it writes
WRITTEN = "abc/d"
q = shlex.quote


# ---- words ----

def quote_letters(r, word):
    """Some letters of a word in quotes of some kind."""
    out = ""
    for c in word:
        kind = r.randrange(8)
        if kind == 0:
            out += "'" + c + "'"
        elif kind == 1:
            out += '"' + c + '"' if c not in '$`"\\!' else "'" + c + "'"
        elif kind == 2 and c != "\n":
            out += "\\" + c
        elif kind == 3:
            out += "''" + (c if c not in "*?[" else c)
        else:
            out += c
    return out


def quoted(r, command):
    return " ".join(w if "*" in w else quote_letters(r, w)
                    for w in command.split(" "))


def whole_words(r, command):
    kinds = ("'%s'", '"%s"', "$'%s'")
    return " ".join(w if "*" in w else r.choice(kinds) % w
                    for w in command.split(" "))


def ansi(r, command):
    def one(c):
        return r.choice(("\\x%02x" % ord(c), "\\%03o" % ord(c), c,
                         "\\u%04x" % ord(c)))
    return " ".join(w if "*" in w else "$'" + "".join(map(one, w)) + "'"
                    for w in command.split(" "))


def blanks(r, command):
    gaps = (" ", "  ", "\t", " \\\n", "\\\n ", " \t ")
    words = command.split(" ")
    return "".join(w + r.choice(gaps) for w in words[:-1]) + words[-1]


def ifs(r, command):
    gap = r.choice(("${IFS}", "$IFS"))
    words = command.split(" ")
    if gap == "$IFS" and any(w[0].isalnum() or w[0] == "_" for w in words[1:]):
        gap = "${IFS}"
    return gap.join(words)


def cut_line(r, command):
    at = r.randrange(1, len(command))
    if command[at - 1] in " \\":
        at -= 1
    return command[:at] + "\\\n" + command[at:] if at > 0 else command


def braces(r, command):
    return "{" + ",".join(command.split(" ")) + "}"


def path(r, command):
    prog, _, rest = command.partition(" ")
    return r.choice(("/bin/", "/usr/bin/", "/usr/../bin/", "//sbin//")) \
        + prog + " " + rest


def variables(r, command):
    words = command.split(" ")
    i = r.randrange(len(words))
    name = r.choice(("x", "PROG", "_a1"))
    use = r.choice(("$%s", "${%s}"))  % name
    if "*" in words[i]:
        return command
    value = words[i]
    words[i] = use
    first = r.choice(("%s=%s; ", "%s=%s\n", "export %s=%s; ", "%s='%s'; "))
    return first % (name, value) + " ".join(words)


ROOTS = ("/", "//", "/.", "/..", "/./", "/../", "/usr/..", "/usr/../",
         "/tmp/../.", "//./..//", "/var/lib/../../", "/etc/./..")
DEVS = ("//dev/%s", "/dev/./%s", "/dev//%s", "/usr/../dev/%s",
        "/dev/../dev/%s", "/./dev/%s", "/dev/shm/../%s", "//dev//.//%s")


def other_path(r, command):
    """The same root or device by another name."""
    def one(word):
        at = word.find("/dev/")
        if word == "/" or word == "//":
            return r.choice(ROOTS)
        if at >= 0 and not word.endswith(("zero", "null")):
            return word[:at] + r.choice(DEVS) % word[at + 5:]
        return word
    return " ".join(map(one, command.split(" ")))


def reordered(r, command):
    """Options of rm as GNU getopt reads them: anywhere, cut short."""
    prog, *words = command.split(" ")
    operands = [w for w in words if not w.startswith("-")]
    flags = r.choice((["-rf"], ["-f", "-r"], ["-vRf"], ["-fir"],
                      ["--rec"], ["--recu", "--fo"], ["-r", "--force"],
                      ["-f", "--recursive", "--one-file-system"],
                      ["--verb", "-R"], ["-rf", "--interactive=never"]))
    flags += [w for w in words if w.startswith("--no")]
    if r.randrange(3) == 0:
        return " ".join([prog] + flags + ["--"] + operands)
    all_of = flags + operands
    r.shuffle(all_of)
    return " ".join([prog] + all_of)


def whole_variable(r, command):
    return "cmd=" + q(command) + "; " + r.choice(("$cmd", "eval \"$cmd\"",
                                                    "eval $cmd"))


def substitute(r, command):
    prog, _, rest = command.partition(" ")
    return r.choice(("$(echo %s)", "`echo %s`", "$(printf %%s %s)",
                     "$(printf '%s\\n')")) % prog + " " + rest


# ---- places ----

def placed(r, command):
    return r.choice((
        "true && %s", "false || %s", "true; %s", "sleep 0 & %s", "( %s )",
        "{ %s; }", "if true; then %s; fi", "if false; then :; else %s; fi",
        "for i in 1; do %s; done", "while true; do %s; break; done",
        "until false; do %s; break; done",
        "case a in b) :;; a) %s;; esac", "case a in (a) %s ;; esac",
        "f() { %s; }; f", "f() ( %s ); f", "function g { %s; }; g",
        "! %s", "# nothing here\n%s", ": 'it is fine'; %s # really",
        "x=$(%s); echo \"$x\"", "echo \"$(%s)\"", "echo `%s`",
        "%s | cat", "true | %s", "%s &\nwait", "cat <(%s)",
        "[ -d /tmp ] && %s", "[[ -n x ]] && %s", "trap '%s' EXIT",
        "echo done; echo $(( $(%s | wc -c) + 1 ))", "{ { ( %s ) } }",
        "cat <<END\n$(%s)\nEND", "cat <<'END'\n$(true)\nEND\n%s",
        "echo ${nothing:-$(%s)}")) % command


def redirected(r, command):
    return r.choice((">/dev/null %s", "2>&1 %s", "%s >/dev/null 2>&1",
                     "</dev/null %s 2>/dev/null")) % command


# ---- who runs it ----

def wrapped(r, command):
    return r.choice((
        "env %s", "env -i PATH=/bin:/usr/bin %s", "nohup %s", "nice %s",
        "nice -n 5 %s", "timeout 10 %s", "timeout -k 1 10 %s", "command %s",
        "exec %s", "setsid -w %s", "stdbuf -o0 %s", "time %s", "sudo %s",
        "sudo -n -u root %s", "sudo -E -- %s", "A=1 B='2 3' %s",
        "busybox %s", "doas %s", "ionice -c 3 %s", "env -u X nice nohup %s",
        "chroot / %s", "find . -maxdepth 0 -exec %s \\;",
        "echo | xargs %s")) % command


def shell(r, command):
    return r.choice((
        "sh -c %s", "bash -c %s", "bash -lc %s", "/bin/sh -ec %s",
        "bash --norc -o pipefail -c %s", "eval %s", "dash -c %s",
        "sudo sh -c %s", "env sh -c %s", "su root -c %s")) % q(command)


def nested(r, command):
    """A script in a script, two deep."""
    outer = r.choice(("sh -c %s", "bash -c %s", "eval %s", "nohup sh -c %s",
                      "env -i sh -c %s", "timeout 5 bash -c %s"))
    return outer % q(shell(r, command))


def many_wrappers(r, command):
    for _ in range(r.randrange(2, 5)):
        command = wrapped(r, command) if usable(wrapped, command) else command
    return command


def commented(r, command):
    return r.choice(("# it's nothing\n%s", "%s # just a test", "\n\n%s\n",
                     "true # ; \n%s", ": '# not a comment'; %s",
                     "cat <<E # a here-document\nit's \"\nE\n%s",
                     "echo a\\\n# b\n%s")) % command


def fed(r, command):
    b64 = base64.b64encode(command.encode()).decode()
    return r.choice((
        "echo %s | sh" % q(command), "printf '%%s\\n' %s | bash" % q(command),
        "sh <<EOF\n%s\nEOF" % command.replace("$", "\\$").replace("`", "\\`"),
        "sh <<'EOF'\n%s\nEOF" % command, "cat <<'X' | sh\n%s\nX" % command,
        "bash <<< %s" % q(command), "bash <(echo %s)" % q(command),
        "echo %s | base64 -d | sh" % b64,
        "echo %s | base64 --decode | bash -s" % b64,
        "base64 -d <<< %s | sh" % b64,
        "eval \"$(echo %s | base64 -d)\"" % b64,
        "sh -c \"$(printf %s | base64 -d)\"" % b64,
        "echo %s | cat | tee /dev/null | sh" % q(command)))


WORDS = [quoted, whole_words, ansi, blanks, ifs, cut_line, braces, path,
         variables, whole_variable, substitute]
AROUND = [placed, redirected, wrapped, shell, fed, nested, many_wrappers,
          commented]


def bombs(r):
    for name in (":", "bomb", "f", "x1"):
        yield f"{name}(){{ {name}|{name}& }};{name}"
        yield f"{name}() {{ {name} | {name} & }}; {name}"
        yield f"{name}()\n{{\n\t{name} |\n\t{name} &\n}}\n{name}"
        yield f"function {name} {{ {name}|{name}& }}; {name}"
        yield shell(r, f"{name}(){{ {name}|{name}& }};{name}")
        yield f"if true; then {name}(){{ {name}|{name}& }}; {name}; fi"
        yield f"{name}(){{ echo; ({name}|{name})& }};{name}"


def redirections(r):
    for dev in ("/dev/sda", "/dev/nvme0n1p1", "//dev/./vda", "/dev/mmcblk0"):
        for how in ("echo x > %s", "cat img >%s", ">%s", "echo x >| %s",
                    "echo x &> %s", "exec 4<>%s", "(cat img) >> '%s'",
                    "cat img | tee %s >/dev/null", "> \"%s\" cat img"):
            yield how % dev
        yield quoted(r, "echo x") + " >" + quote_letters(r, dev)
        yield shell(r, "echo x > " + dev)


def usable(rule, command):
    """Some rewritings need plain words, or a command that is one."""
    simple = not any(c in command for c in "\n'\"$\\;|&`(){}<>#")
    if rule in (quoted, whole_words, ansi, ifs, braces, substitute, variables,
                path, cut_line, blanks, whole_variable):
        return simple and not (rule in (ifs, braces) and "*" in command)
    if rule is nested:
        return len(command) < 60 and "'" not in command
    if rule is commented:
        return "<<" not in command
    if rule in (wrapped, redirected, many_wrappers):
        return not command.startswith("! ") and \
            not any(c in command for c in "\n;|&{}<>#()=")
    if rule is placed:
        return not any(c in command for c in "'\"`\n#")
    return True


def spell(r, command):
    """One to three rewritings: of the words, then of what is around."""
    if command.startswith("rm ") and r.randrange(3) == 0:
        command = reordered(r, command)
    if r.randrange(3) == 0:
        command = other_path(r, command)
    rule = r.choice(WORDS)
    if usable(rule, command):
        command = rule(r, command)
    for _ in range(r.randrange(3)):
        rule = r.choice(AROUND)
        if usable(rule, command) and len(command) < 200:
            command = rule(r, command)
    return command


def all_spellings(r, dangers, times):
    for danger in dangers:
        for rule in WORDS + AROUND:
            for _ in range(3 if rule in AROUND else 1):
                if usable(rule, danger):
                    yield rule(r, danger)
        for _ in range(4):
            yield other_path(r, danger)
            if danger.startswith("rm "):
                yield reordered(r, other_path(r, danger))
        for _ in range(times):
            yield spell(r, danger)


def check():
    """The rewritings do not change what a command does."""
    r = random.Random(7)
    bad = n = 0
    tmp = tempfile.TemporaryDirectory()
    os.symlink("/bin/bash", tmp.name + "/sh")
    env = dict(os.environ, PATH=tmp.name + ":" + os.environ["PATH"])
    for s in all_spellings(r, [HARMLESS], 400):
        if any(w in s for w in ("sudo", "doas", "su root", "busybox",
                                "chroot", "/dev/null", "/bin/", "sbin", "-i PATH",
                                "! ", "trap", "dash", " command ", " exec ",
                                " time ", " A=1 ")):
            continue
        n += 1
        p = subprocess.run(["bash", "-c", s], stdin=subprocess.DEVNULL,
                           capture_output=True, text=True, timeout=10,
                           env=env)
        if WRITTEN not in p.stdout and "wc -c" not in s:
            bad += 1
            print("changed:", repr(s), repr(p.stdout), p.stderr.strip())
    print(f"{n} spellings, {bad} changed")
    return bad != 0


def main():
    if sys.argv[1:] == ["--check"]:
        sys.exit(check())
    r = random.Random(1)
    seen = dict.fromkeys(all_spellings(r, DANGERS, 20))
    seen.update(dict.fromkeys(bombs(r)))
    seen.update(dict.fromkeys(redirections(r)))
    print("# Spellings of the floor's dangers, made by spell.py; all must be"
          " blocked.")
    for s in seen:
        print(s.replace("\n", "⏎").replace("\t", "⇥"))


main()
