/*
 * SPDX-License-Identifier: ISC
 *
 * What simple commands write when that can be known from their words alone:
 * echo, printf, cat, tee, and decoders of base64 and of hex digits.
 */
#include <stdlib.h>
#include <string.h>

#include "common/wire.h"
#include "policy/filter_int.h"

void
lit_clear(struct lit *l)
{
	free(l->own);
	memset(l, 0, sizeof(*l));
}

/* ---- decoders ---- */

static int
digit64(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+' || c == '-')
		return 62;
	return c == '/' || c == '_' ? 63 : -1;
}

char *
base64_text(const char *s, size_t n, size_t *len)
{
	char *out = malloc(n / 4 * 3 + 4);
	unsigned bits = 0, v = 0;
	size_t i, k = 0;
	int d;

	for (i = 0; out != NULL && i < n && s[i] != '='; i++) {
		if (memchr(" \t\r\n", s[i], 4) != NULL)
			continue;
		if ((d = digit64(s[i])) == -1)
			break;
		v = (v << 6 | (unsigned)d) & 0xffffff;
		if ((bits += 6) >= 8) {
			bits -= 8;
			out[k++] = (char)(v >> bits);
		}
	}
	if (out == NULL || k == 0) {
		free(out);
		return NULL;
	}
	*len = k;
	return out;
}

static char *
hex_text(const char *s, size_t n, size_t *len)
{
	static const char hex[] = "0123456789abcdef";
	char *out = malloc(n / 2 + 1);
	const char *d;
	size_t i, k = 0;

	for (i = 0; out != NULL && i < n; i++) {
		if (memchr(" \t\r\n", s[i], 4) != NULL)
			continue;
		d = memchr(hex, s[i] | 0x20, 16);
		if (d == NULL || s[i] < '0')
			break;
		if (k++ % 2 == 0)
			out[k / 2] = (char)((d - hex) << 4);
		else
			out[k / 2 - 1] |= (char)(d - hex);
	}
	if (out == NULL || k < 2) {
		free(out);
		return NULL;
	}
	*len = k / 2;
	return out;
}

static int
is_control(unsigned char c)
{
	return (c < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7f;
}

int
payload_text(char *s, size_t *len)
{
	size_t i, n = *len, zero = 0;

	for (i = 1; i < n; i += 2)
		zero += s[i] == '\0';
	if (n % 2 == 0 && zero * 4 > n) {
		/* what is not ASCII is of no interest */
		for (i = 0; i < n / 2; i++)
			s[i] = s[2 * i + 1] == '\0' ? s[2 * i] : '?';
		*len = n /= 2;
	}
	for (i = 0; i < n; i++)
		if (is_control((unsigned char)s[i]))
			return 0;
	return 1;
}

/* ---- echo and printf ---- */

static int
is_echo_option(const char *s)
{
	return s[0] == '-' && s[1] != '\0' &&
	       s[1 + strspn(s + 1, "neE")] == '\0';
}

static void
put_escaped(struct wbuf *w, const char *s, size_t n)
{
	const char *end = s + n, *bs;
	char out[4];
	size_t k;

	while (
	    (bs = memchr(s, '\\', (size_t)(end - s))) != NULL && bs + 1 < end) {
		wput_raw(w, s, (size_t)(bs - s));
		wput_raw(w, out, ansi_escape(bs + 1, end, out, &k));
		s = bs + 1 + k;
	}
	wput_raw(w, s, (size_t)(end - s));
}

static void
echo_words(const struct cmd *c, size_t i, int raw, struct wbuf *w)
{
	for (; i < c->n; i++) {
		if (raw)
			wput_raw(w, cmd_s(c, i), cmd_w(c, i)->len);
		else
			put_escaped(w, cmd_s(c, i), cmd_w(c, i)->len);
		wput_raw(w, i + 1 < c->n ? " " : "\n", 1);
	}
}

/* Some shells write escapes as they stand and some do not, unless -e or -E
 * asks for one of them: then it is both. */
static void
echo_output(const struct cmd *c, struct wbuf *w)
{
	size_t i = 1, k;
	int raw = 0, plain = 1;

	for (; i < c->n && is_echo_option(cmd_s(c, i)); i++) {
		raw |= strchr(cmd_s(c, i), 'E') != NULL;
		plain &= strpbrk(cmd_s(c, i), "eE") == NULL;
	}
	echo_words(c, i, raw, w);
	for (k = i; plain && k < c->n; k++)
		if (strchr(cmd_s(c, k), '\\') != NULL) {
			echo_words(c, i, 1, w);
			return;
		}
}

/* One pass over the format; the next argument. */
static size_t
printf_once(const struct cmd *c, size_t fmt, size_t arg, struct wbuf *w)
{
	const char *s = cmd_s(c, fmt), *pct;

	while ((pct = strchr(s, '%')) != NULL) {
		put_escaped(w, s, (size_t)(pct - s));
		s = pct + 1;
		if (*s == '%') {
			wput_raw(w, s++, 1);
			continue;
		}
		s += strspn(s, "-+ #0123456789.*'lhjzt");
		if (*s == '\0')
			return arg;
		if (arg < c->n && *s == 'b')
			put_escaped(w, cmd_s(c, arg), cmd_w(c, arg)->len);
		else if (arg < c->n)
			wput_raw(w, cmd_s(c, arg), cmd_w(c, arg)->len);
		arg += arg < c->n;
		s++;
	}
	put_escaped(w, s, strlen(s));
	return arg;
}

static void
printf_output(const struct cmd *c, struct wbuf *w)
{
	size_t fmt = 1, arg, next, budget = c->x->budget;

	if (fmt < c->n && strcmp(cmd_s(c, fmt), "--") == 0)
		fmt++;
	if (fmt >= c->n || strcmp(cmd_s(c, fmt), "-v") == 0)
		return;
	next = fmt + 1;
	do {
		arg = next;
		next = printf_once(c, fmt, arg, w);
		/* a long format for short words writes more than was read */
		if (budget < cmd_w(c, fmt)->len)
			break;
		budget -= cmd_w(c, fmt)->len;
	} while (next > arg && next < c->n);
	c->x->budget = budget;
}

/* ---- filters ---- */

static int
has_word(const struct cmd *c, const char *list)
{
	const char *p;
	size_t i, n;

	for (i = 1; i < c->n; i++) {
		n = cmd_w(c, i)->len;
		p = n == 0 ? NULL : strstr(list, cmd_s(c, i));
		if (p != NULL && p > list && p[-1] == ' ' && p[n] == ' ')
			return 1;
	}
	return 0;
}

/* No operand but "-": it reads its standard input. */
static int
reads_input(const struct cmd *c)
{
	size_t i;

	for (i = 1; i < c->n; i++)
		if (cmd_s(c, i)[0] != '-')
			return 0;
	return 1;
}

enum filter_kind { F_NONE, F_SAME, F_BASE64, F_HEX };

static enum filter_kind
filter_kind(const struct cmd *c, const char *name)
{
	if (strcmp(name, "tee") == 0)
		return F_SAME;
	if (strcmp(name, "cat") == 0)
		return reads_input(c) ? F_SAME : F_NONE;
	if (strcmp(name, "base64") == 0)
		return has_word(c, " -d -D -di -id --decode --d --de --dec "
				   "--deco --decod ") &&
			       reads_input(c)
			   ? F_BASE64
			   : F_NONE;
	if (strcmp(name, "openssl") == 0)
		return has_word(c, " base64 -base64 -a ") && has_word(c, " -d ")
			   ? F_BASE64
			   : F_NONE;
	if (strcmp(name, "xxd") == 0)
		return has_word(c, " -r -rp -p -ps ") && reads_input(c)
			   ? F_HEX
			   : F_NONE;
	return F_NONE;
}

static void
own_text(struct fctx *x, struct lit *out, char *text, size_t n)
{
	if (text == NULL)
		return;
	out->kind = LIT_TEXT;
	out->p = out->own = text;
	out->len = n;
}

static void
filter_output(const struct cmd *c, enum filter_kind kind, struct lit *out)
{
	struct fctx *x = c->x;
	struct lit in = cmd_input(c);
	char *text = NULL;
	size_t n = 0;

	if (kind == F_NONE || in.kind == LIT_NONE)
		return;
	if (kind == F_SAME && in.kind == LIT_STDIN) {
		*out = in;
		return;
	}
	if (in.kind == LIT_STDIN)
		in = x->in;
	/* every stage of a pipeline may pass it on */
	if (in.len > x->budget)
		return;
	x->budget -= in.len;
	if (kind == F_BASE64)
		text = base64_text(in.p, in.len, &n);
	else if (kind == F_HEX)
		text = hex_text(in.p, in.len, &n);
	else if ((text = malloc(in.len + 1)) != NULL)
		memcpy(text, in.p, n = in.len);
	own_text(x, out, text, n);
}

void
lit_output(const struct cmd *c, const char *name, struct lit *out)
{
	struct wbuf w;
	size_t i;

	/* what goes to a file does not go on */
	for (i = 0; i < c->nredir; i++)
		if (c->lx->r[c->redir + i].op == R_OUT &&
		    c->lx->r[c->redir + i].fd == 1)
			return;
	if (strcmp(name, "echo") != 0 && strcmp(name, "printf") != 0) {
		filter_output(c, filter_kind(c, name), out);
		return;
	}
	wbuf_init(&w, 64U << 20);
	if (*name == 'e')
		echo_output(c, &w);
	else
		printf_output(c, &w);
	if (w.err)
		wbuf_free(&w);
	else
		own_text(c->x, out, (char *)w.p, w.len);
}
