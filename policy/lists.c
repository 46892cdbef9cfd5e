/*
 * SPDX-License-Identifier: ISC
 *
 * Classes of programs for the lints, as data (server.json(5), "Lints").  A
 * program that is missing here is a lint that is not given; the sandbox, not
 * these lists, is what confines a command.  Each list is sorted by bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "policy/confkey.h"

/* Runs other programs or its own code as its arguments say. */
static const char *const escape_capable[] = {"7z", "7za", "R", "Rscript", "apk",
    "apt", "apt-get", "ar", "ash", "at", "awk", "bash", "batch", "bpftrace",
    "bun", "busybox", "bwrap", "c++", "capsh", "catchsegv", "cc", "chroot",
    "chrt", "clang", "clang++", "cpio", "crontab", "crun", "csh", "ctags",
    "ctr", "dash", "dc", "deno", "dnf", "doas", "docker", "dpkg", "ed",
    "elixir", "emacs", "emacsclient", "entr", "env", "erl", "ex", "expect",
    "fakeroot", "faketime", "fd", "find", "firejail", "fish", "flock", "ftp",
    "g++", "gawk", "gcc", "gdb", "ghci", "git", "gold", "gpg", "groovy",
    "guile", "hg", "iex", "info", "ionice", "ip", "iptables", "ipython", "irb",
    "java", "journalctl", "jshell", "julia", "ksh", "kubectl", "ld", "less",
    "lftp", "lldb", "logrotate", "ltrace", "lua", "luajit", "m4", "man", "mawk",
    "mksh", "more", "most", "mysql", "nano", "nawk", "nerdctl", "newgrp",
    "nice", "node", "nodejs", "nohup", "nsenter", "nsjail", "nvim", "ocaml",
    "octave", "openssl", "pacman", "parallel", "perf", "perl", "pg", "php",
    "pkexec", "podman", "prlimit", "psql", "pwsh", "pypy", "pypy3", "python",
    "python2", "python3", "racket", "rbash", "rlwrap", "rpm", "rsync", "ruby",
    "run-parts", "run0", "runc", "runuser", "rvim", "sbcl", "scala", "screen",
    "script", "scriptreplay", "sed", "service", "setarch", "setpriv", "setsid",
    "sg", "sh", "socat", "sort", "split", "sqlite3", "ssh", "ssh-agent",
    "start-stop-daemon", "stdbuf", "strace", "su", "sudo", "svn", "systemctl",
    "systemd-run", "tar", "taskset", "tclsh", "tcpdump", "tcsh", "time",
    "timeout", "tmux", "toybox", "unshare", "unzip", "valgrind", "vi", "view",
    "vim", "vim.tiny", "watch", "wish", "xargs", "xdg-open", "yum", "zip",
    "zsh"};

/* Runs what files of the project say. */
static const char *const project_file[] = {"ansible", "ansible-playbook", "ant",
    "autoconf", "automake", "autoreconf", "bazel", "bmake", "buck", "bundle",
    "bundler", "cabal", "cargo", "cmake", "composer", "conda", "configure",
    "corepack", "ctest", "dotnet", "esbuild", "eslint", "flake8", "gem",
    "gmake", "go", "gradle", "gradlew", "grunt", "gulp", "hatch", "helm",
    "invoke", "jest", "just", "lein", "lerna", "libtoolize", "make", "mamba",
    "meson", "mix", "mkdocs", "mocha", "msbuild", "mvn", "mvnw", "mypy",
    "ninja", "nox", "npm", "npx", "nx", "pdm", "phpunit", "pip", "pip3",
    "pipenv", "pipx", "pnpm", "poetry", "pre-commit", "prettier", "py.test",
    "pylint", "pytest", "rake", "rebar3", "rollup", "rspec", "ruff", "rustup",
    "sbt", "scons", "sphinx-build", "stack", "swift", "task", "terraform",
    "tox", "tsc", "turbo", "unittest", "uv", "uvx", "vagrant", "vite", "vitest",
    "waf", "webpack", "xcodebuild", "yarn"};

/* Changes files that its arguments name. */
static const char *const writers[] = {"bunzip2", "bzip2", "chattr", "chgrp",
    "chmod", "chown", "compress", "cp", "csplit", "dd", "dos2unix", "fallocate",
    "gunzip", "gzip", "iconv", "install", "link", "ln", "lz4", "lzma", "mkdir",
    "mkfifo", "mknod", "mktemp", "mmv", "mv", "objcopy", "patch", "recode",
    "rename", "rm", "rmdir", "setfacl", "setfattr", "shred", "shuf", "sponge",
    "strip", "tee", "touch", "truncate", "uncompress", "uniq", "unix2dos",
    "unlink", "unxz", "unzstd", "xz", "zstd"};

/* Talks to the network. */
static const char *const network[] = {"ab", "aria2c", "aws", "az", "curl",
    "dig", "docker", "drill", "elinks", "ftp", "gcloud", "git", "gsutil", "hg",
    "host", "http", "httpie", "https", "irssi", "kubectl", "lftp", "links",
    "links2", "lynx", "mail", "mailx", "masscan", "mongo", "mongosh", "mtr",
    "mutt", "mysql", "nc", "ncat", "netcat", "nmap", "nslookup", "openssl",
    "ping", "ping6", "podman", "psql", "rclone", "rcp", "redis-cli", "rlogin",
    "rsh", "rsync", "s3cmd", "scp", "sendmail", "sftp", "siege", "socat", "ssh",
    "svn", "tcpdump", "telnet", "tftp", "tracepath", "traceroute", "w3m",
    "websocat", "wget", "wget2", "wrk"};

#define PROG_MAX 64 /* bytes of a name that is looked up */

static int
word_cmp(const void *a, const void *b)
{
	return strcmp(a, *(const char *const *)b);
}

/* A name as it is, or less a version as in python3.11 and clang-14. */
static int
list_has(const char *const *list, size_t n, const char *name)
{
	char buf[PROG_MAX];
	size_t len = strlen(name);

	if (bsearch(name, list, n, sizeof(*list), word_cmp) != NULL)
		return 1;
	if (len >= sizeof(buf))
		return 0;
	memcpy(buf, name, len + 1);
	while (len > 0 && strchr("0123456789.-", buf[len - 1]) != NULL)
		buf[--len] = '\0';
	return len > 0 &&
	       bsearch(buf, list, n, sizeof(*list), word_cmp) != NULL;
}

int
prog_escape_capable(const char *name)
{
	return list_has(escape_capable, nitems(escape_capable), name);
}

int
prog_project_file(const char *name)
{
	return list_has(project_file, nitems(project_file), name);
}

int
prog_writer(const char *name)
{
	return list_has(writers, nitems(writers), name);
}

int
prog_network(const char *name)
{
	return list_has(network, nitems(network), name);
}
