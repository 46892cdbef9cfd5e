/*
 * SPDX-License-Identifier: ISC
 *
 * The command policy.  Input: 1 byte, then by its lowest bit
 *
 * 0: a script, which is judged the same way twice, as standard input and as an
 * argument, and is no better behind other commands;
 * 1: choices.  A danger of the floor is spelled by them, in quotes, behind
 * wrappers, within constructs and scripts of scripts, and stays blocked after
 * each step.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/policy.h"
#include "regress/fuzz/fuzz.h"

static const struct filter *
the_filter(void)
{
	static struct filter *f;
	char why[100];

	/* compiled once; a check leaves nothing in it */
	if (f == NULL)
		f = filter_new(NULL, why, sizeof(why));
	CHECK(f != NULL);
	return f;
}

static int
same(const struct filter_result *a, const struct filter_result *b)
{
	return a->nblocked == b->nblocked && a->nwarned == b->nwarned &&
	       memcmp(a->blocked, b->blocked,
		   a->nblocked * sizeof(a->blocked[0])) == 0 &&
	       memcmp(a->warned, b->warned,
		   a->nwarned * sizeof(a->warned[0])) == 0;
}

static void
judge(const char *s, size_t n, struct filter_result *r)
{
	CHECK(filter_check_script(the_filter(), s, n, r) == 0);
	CHECK(!r->too_large);
	CHECK(r->nblocked + r->nwarned == 0 || r->reason != NULL);
}

static void
judge_line(const char *s, size_t n, struct filter_result *r)
{
	struct strlist argv = {0};

	CHECK(strlist_add(&argv, "sh", 2) == 0);
	CHECK(strlist_add(&argv, "-c", 2) == 0);
	CHECK(strlist_add(&argv, s, n) == 0);
	CHECK(filter_check(the_filter(), &argv, NULL, 0, r) == 0);
	strlist_clear(&argv);
}

/* ---- 0: any script ---- */

static int
is_plain(const char *s, size_t n)
{
	/* behind -c it would be another option */
	if (n > 0 && (*s == '-' || *s == '+'))
		return 0;
	for (; n > 0; s++, n--)
		if ((*s < ' ' || *s > '~') && *s != '\n' && *s != '\t')
			return 0;
	return 1;
}

static void
any_script(const char *s, size_t n)
{
	static const char *const before[] = {"# it's\n", "true\n", "a | b;\n",
	    "y \"$z\"\n", "if a; then b; fi\n", "cat <<E\nf\nE\n"};
	struct filter_result one, two;
	size_t i, k;
	char *more;

	judge(s, n, &one);
	judge(s, n, &two);
	CHECK(same(&one, &two));
	if (is_plain(s, n)) {
		/* as a word of its own it may be worth a warning too */
		judge_line(s, n, &two);
		CHECK(two.nwarned >= one.nwarned);
		two.nwarned = one.nwarned = 0;
		CHECK(same(&one, &two));
	}
	for (i = 0; one.nblocked > 0 && i < nitems(before); i++) {
		k = strlen(before[i]);
		more = fuzz_alloc(k + n);
		memcpy(more, before[i], k);
		memcpy(more + k, s, n);
		judge(more, k + n, &two);
		CHECK(two.nblocked > 0);
		free(more);
	}
}

/* ---- 1: a danger that is spelled ---- */

struct text {
	char *s;
	size_t n, cap;
};

static void
put(struct text *t, const char *s, size_t n)
{
	if (t->n + n + 1 > t->cap) {
		t->cap = (t->n + n + 1) * 2;
		t->s = realloc(t->s, t->cap);
		CHECK(t->s != NULL);
	}
	memcpy(t->s + t->n, s, n);
	t->n += n;
	t->s[t->n] = '\0';
}

static void
puts_(struct text *t, const char *s)
{
	put(t, s, strlen(s));
}

/* One byte of a word in some quotes. */
static void
put_char(struct text *t, char c, unsigned style)
{
	static const char hex[] = "0123456789abcdef";
	char esc[] = "$'\\xHH'";

	switch (style % 8) {
	case 1:
		puts_(t, "'");
		put(t, &c, 1);
		puts_(t, "'");
		break;
	case 2:
		puts_(t, "\"");
		put(t, &c, 1);
		puts_(t, "\"");
		break;
	case 3:
		puts_(t, "\\");
		put(t, &c, 1);
		break;
	case 4:
		esc[4] = hex[(unsigned char)c >> 4];
		esc[5] = hex[(unsigned char)c & 15];
		puts_(t, esc);
		break;
	case 5:
		puts_(t, "''\"\"");
		put(t, &c, 1);
		break;
	case 6:
		puts_(t, "\\\n");
		put(t, &c, 1);
		break;
	default:
		put(t, &c, 1);
	}
}

static void
put_words(struct text *t, struct feed *f, const char *words)
{
	static const char *const gaps[] = {
	    " ", "  ", "\t", " \\\n", "\\\n\t", "${IFS}", " \"\"'' "};
	unsigned style = feed_u8(f), mix = style;

	for (; *words != '\0'; words++) {
		if (*words == ' ' && style % 4 == 3)
			puts_(t, gaps[feed_u8(f) % (nitems(gaps) - 1)]);
		else if (*words == ' ')
			puts_(t, " ");
		else {
			if (style % 2 == 1)
				mix = feed_u8(f);
			put_char(t, *words, mix);
		}
	}
}

/* A command of no interest: its first letter makes it no reserved word. */
static void
put_noise(struct text *t, struct feed *f)
{
	static const char set[] = "abcxyz019-./_ ";
	unsigned n = feed_u8(f) % 12;

	puts_(t, "z");
	while (n-- > 0)
		put(t, &set[feed_u8(f) % (sizeof(set) - 1)], 1);
}

/* Put a text into single quotes. */
static void
put_quoted(struct text *t, const struct text *s)
{
	size_t i;

	puts_(t, "'");
	for (i = 0; i < s->n; i++)
		if (s->s[i] == '\'')
			puts_(t, "'\\''");
		else
			put(t, &s->s[i], 1);
	puts_(t, "'");
}

static void
danger(struct text *t, struct feed *f)
{
	static const char *const words[] = {"rm -rf /", "rm -r -f -- //",
	    "rm / -rf", "rm --recursive --force /../",
	    "rm --no-preserve-root -rf x", "dd if=/dev/zero of=/dev/sda",
	    "mkfs.ext4 -L x /dev/sdb1", "wipefs -a /dev/nvme0n1",
	    "shred -v /dev/./vda", "tee x //dev/sda", "cp img /dev/mmcblk0"};
	static const char *const texts[] = {
	    ":(){ :|:& };:", "b() {\n b | b &\n}\nb", "function q { q|q& }; q",
	    "echo x >/dev/sda", "true &> /dev/sda", ">| /dev/nvme0n1 cat x"};
	static const char *const wraps[] = {"sudo", "sudo -n -u root",
	    "env -i A=b", "nohup", "nice -n 5", "timeout -k 1 9", "command",
	    "busybox", "setsid", "stdbuf -oL", "exec", "A=b", "xargs -n 1"};
	unsigned c = feed_u8(f), n = feed_u8(f) % 4;

	if (c % 4 == 0) {
		puts_(t, texts[c / 4 % nitems(texts)]);
		return;
	}
	while (n-- > 0) {
		puts_(t, wraps[feed_u8(f) % nitems(wraps)]);
		puts_(t, " ");
	}
	put_words(t, f, words[c / 4 % nitems(words)]);
}

static const struct {
	const char *before, *after;
	int deeper; /* one more script within a script */
	int quote;
} around[] = {
    {"# it's a comment\n", "", 0, 0},
    {"(\n", "\n)", 0, 0},
    {"{\n", "\n}", 0, 0},
    {"if true; then ", "\nfi", 0, 0},
    {"if false; then :; elif ", "\nthen :; fi", 0, 0},
    {"while :; do\n", "\ndone", 0, 0},
    {"for i in a b\ndo ", "\ndone", 0, 0},
    {"case x in x)\n", "\n;; esac", 0, 0},
    {"case x in (y) z;; *) ", "\nesac", 0, 0},
    {"f() {\n", "\n}\nf", 0, 0},
    {"function f {\n", "\n}", 0, 0},
    {"echo $(\n", "\n)", 0, 0},
    {"echo \"a $(", "\n) b\"", 0, 0},
    {"x=$(", "\n) y", 0, 0},
    {"cat <(", "\n)", 0, 0},
    {"true && {\n", "\n}", 0, 0},
    {"z | {\n", "\n} | z", 0, 0},
    {"! ", "", 0, 0},
    {": ${x:-$(", "\n)}", 0, 0},
    {"", "\n# done", 0, 0},
    {"cat <<E\nit's\nE\n", "", 0, 0},
    {"sh -c ", "", 1, 1},
    {"bash -elc ", " x y", 1, 1},
    {"eval ", "", 1, 1},
    {"sudo env sh -c ", "", 1, 1},
    {"trap ", " EXIT", 1, 1},
    {"sh <<'EOF'\n", "\nEOF\n", 1, 0},
    {"printf %s ", " | sh", 1, 1},
    {"bash <<< ", "", 1, 1},
};

static void
wrap(struct text *t, struct feed *f, int *depth)
{
	unsigned i = feed_u8(f);
	struct text out = {0};

	if (i >= 200) {
		put_noise(&out, f);
		puts_(&out, i % 2 == 0 ? "\n" : "; ");
		put(&out, t->s, t->n);
	} else {
		i %= nitems(around);
		/* a here-document's end must not come early */
		if ((around[i].deeper && *depth == 3) ||
		    (strstr(around[i].before, "EOF") != NULL &&
			strstr(t->s, "EOF") != NULL))
			return;
		*depth += around[i].deeper;
		puts_(&out, around[i].before);
		if (around[i].quote)
			put_quoted(&out, t);
		else
			put(&out, t->s, t->n);
		puts_(&out, around[i].after);
	}
	free(t->s);
	*t = out;
}

static void
must_block(const struct text *t)
{
	struct filter_result r;

	judge(t->s, t->n, &r);
	if (r.nblocked > 0)
		judge_line(t->s, t->n, &r);
	if (r.nblocked > 0)
		return;
	fprintf(stderr, "not blocked: %s\n", t->s);
	CHECK(!"a danger gets through");
}

static void
spelled(struct feed *f)
{
	struct text t = {0};
	int depth = 0, i;

	danger(&t, f);
	must_block(&t);
	for (i = 0; i < 8 && f->n > 0; i++) {
		wrap(&t, f, &depth);
		must_block(&t);
	}
	free(t.s);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = {data, size};
	char *copy;

	if (feed_u8(&f) % 2 == 1) {
		spelled(&f);
		return 0;
	}
	copy = (char *)fuzz_copy(f.p, f.n);
	any_script(copy, f.n);
	free(copy);
	return 0;
}
