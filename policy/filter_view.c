/*
 * SPDX-License-Identifier: ISC
 *
 * What custom rules see: commands as words with single spaces between them.
 */
#include <string.h>

#include "policy/filter_int.h"

#define VIEW_KEEP 4096 /* seen again with what comes next */

void
custom_scan(struct fctx *x, const char *s, size_t n)
{
	const struct filter *f = x->f;
	size_t i;

	for (i = 0; i < f->ncustom; i++)
		if ((x->custom >> i & 1) == 0 &&
		    rx_match(f->custom[i], s, n, f->us))
			x->custom |= 1ULL << i;
}

static void
view_put(struct fctx *x, const char *s, size_t n)
{
	if (fctx_grow(x, &x->view, &x->viewcap, x->viewlen + n, 1) == -1)
		return;
	memcpy(x->view + x->viewlen, s, n);
	x->viewlen += n;
}

void
view_flush(struct fctx *x)
{
	size_t keep = x->viewlen < VIEW_KEEP ? x->viewlen : VIEW_KEEP;

	if (x->viewlen == 0)
		return;
	custom_scan(x, x->view, x->viewlen);
	memmove(x->view, x->view + x->viewlen - keep, keep);
	x->viewlen = keep;
}

void
view_cmd(const struct cmd *c)
{
	struct fctx *x = c->x;
	size_t i;

	for (i = 0; i < c->n; i++) {
		if (i > 0)
			view_put(x, " ", 1);
		view_put(x, cmd_s(c, i), cmd_w(c, i)->len);
	}
	for (i = 0; i < c->nredir; i++) {
		if (c->lx->r[c->redir + i].op == R_HERE)
			continue;
		view_put(
		    x, c->lx->r[c->redir + i].op == R_OUT ? " > " : " < ", 3);
		view_put(x, redir_s(c, i), c->lx->r[c->redir + i].w.len);
	}
	view_put(
	    x, c->sep == SEP_PIPE ? " | " : "\n", c->sep == SEP_PIPE ? 3 : 1);
	if (x->viewlen >= VIEW_SIZE)
		view_flush(x);
}
