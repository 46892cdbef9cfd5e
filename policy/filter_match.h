/*
 * SPDX-License-Identifier: ISC
 *
 * The rules' own questions, for their table (filter_rules.c) alone: 1 when
 * the command is what the rule is about.
 */
#ifndef ABX_POLICY_FILTER_MATCH_H
#define ABX_POLICY_FILTER_MATCH_H

struct cmd;

int m_rm_no_preserve(const struct cmd *);
int m_rm_root(const struct cmd *);
int m_rm_system(const struct cmd *);
int m_dd_device(const struct cmd *);
int m_mkfs(const struct cmd *);
int m_wipe(const struct cmd *);
int m_write_device(const struct cmd *);
int m_write_etc(const struct cmd *);
int m_write_keys(const struct cmd *);
int m_write_sysrq(const struct cmd *);
int m_find_root(const struct cmd *);
int m_chmod(const struct cmd *);
int m_shutdown(const struct cmd *);
int m_sudo(const struct cmd *);

#endif
