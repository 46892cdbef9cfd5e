/*
 * SPDX-License-Identifier: ISC
 *
 * Sessions: the workspace that one stands for, and how it takes the place of a
 * command scope's roots (design: exec, "One pipeline").  Whether it is there
 * is for facts to say, and how many a caller may have for the monitor.  Pure.
 */
#include <string.h>

#include "common/hash.h"
#include "policy/engine.h"

#define NAME_CHARS \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

int
session_ok(const char *s)
{
	size_t n = strlen(s);

	return n > 0 && n <= ABX_ID_MAX && strspn(s, NAME_CHARS) == n &&
	       strcmp(s, ".") != 0 && strcmp(s, "..") != 0;
}

int
workspace_name(
    const char *principal, const char *session, char out[ABX_WORKSPACE_LEN + 1])
{
	size_t n = strlen(principal), m = strlen(session);
	char text[2 * ABX_ID_MAX + 1], hex[2 * SHA256_LEN + 1];
	uint8_t digest[SHA256_LEN];

	if (n > ABX_ID_MAX || m > ABX_ID_MAX)
		return -1;
	memcpy(text, principal, n + 1);
	memcpy(text + n + 1, session, m);
	sha256(text, n + 1 + m, digest);
	hex_encode(digest, sizeof(digest), hex);
	memcpy(out, hex, ABX_WORKSPACE_LEN);
	out[ABX_WORKSPACE_LEN] = '\0';
	return 0;
}

enum code
session_take(
    const struct policy *p, const struct call *call, struct plan_priv *priv)
{
	const char *s;

	if (op_param_find(&ops[call->op], "session") == NULL)
		return C_OK;
	s = policy_arg_str(call->args, "session");
	if (s == NULL)
		s = call->session;
	if (s == NULL)
		return C_OK;
	if (!session_ok(s))
		return C_ARGS_INVALID;
	if (safe_component(s))
		priv->subs.session = s;
	if (p->ws_root < 0)
		return C_OK;
	if (workspace_name(call->who->id, s, priv->workspace) == -1)
		return C_ARGS_INVALID;
	priv->subs.workspace = priv->workspace;
	return C_OK;
}

void
session_scope(
    const struct policy *p, struct plan_priv *priv, struct pcand *cand)
{
	const struct prule *r = cand->st->rule;

	if (priv->workspace[0] == '\0' || !r->has_commands)
		return;
	priv->ws_root.root = (uint32_t)p->ws_root;
	priv->ws_root.tmpl = TMPL_WORKSPACE;
	if (r->commands.has_cwd)
		cand->ws = r->commands.cwd;
	else {
		cand->ws.max_bytes = LIMIT_NONE;
		cand->ws.create_dirs = 1;
		cand->ws.readonly = p->ceiling.readonly;
	}
	cand->ws.roots = &priv->ws_root;
	cand->ws.nroots = 1;
	cand->ws.makes = 1;
}

int
session_root(struct policy *p, int exec)
{
	size_t i;
	long n;

	if (p->ws_dir == NULL || !exec || p->ws_root >= 0)
		return 0;
	for (i = 0; i < p->nrules; i++)
		if (!p->rules[i].deny && p->rules[i].has_commands)
			break;
	if (i == p->nrules)
		return 0;
	if ((n = policy_root_add(p, p->ws_dir)) < 0)
		return n == -1 ? -1 : 1;
	p->ws_root = n;
	return 0;
}

long
policy_workspaces(const struct policy *p)
{
	return p->ws_root;
}

const struct pscope *
cand_cwd(const struct pcand *cand)
{
	const struct prule *r = cand->st->rule;

	if (cand->ws.nroots > 0)
		return &cand->ws;
	return r->has_commands && r->commands.has_cwd ? &r->commands.cwd : NULL;
}

const struct pscope *
cand_scope(const struct pcand *cand, const struct op_param *param)
{
	return (param->roles & R_CWD) != 0 ? cand_cwd(cand)
					   : rule_scope(cand->st->rule, param);
}
