/*
 * SPDX-License-Identifier: ISC
 *
 * Selectors: rank, what they reach on either side, and did-you-mean.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policy/model.h"

static const struct {
	const char *sel, *op;
	int allow, deny;
} rows[] = {
    {"files.download", "files.download", 1, 1},
    {"files.download", "files.upload", 0, 0},
    {"core.reload", "core.reload", 1, 1},
    {"files.*", "files.copy", 1, 1},
    {"files.*", "core.check", 0, 0},
    {"agents.*", "agents.list", 1, 1},
    {"agents.*", "agents.claude.run", 0, 0},
    {"agents.**", "agents.claude.run", 1, 1},
    {"agents.**", "agents.claude.install", 0, 1},
    {"agents.claude.*", "agents.claude.run", 1, 1},
    {"agents.claude.*", "agents.claude.sessions.list", 0, 0},
    {"agents.claude.**", "agents.claude.sessions.create", 0, 1},
    {"system.*", "system.info", 1, 1},
    {"system.*", "system.env.set", 0, 0},
    {"system.**", "system.env.set", 0, 1},
    {"process.*", "process.signal", 0, 1},
    {"group:process", "process.signal", 0, 1},
    {"group:commands", "process.start", 1, 1},
    {"group:commands", "commands.run", 1, 1},
    {"group:commands", "terminal.create", 0, 0},
    {"group:files-read", "files.export", 1, 1},
    {"group:files-read", "files.upload", 0, 0},
    {"group:files", "files.delete", 1, 1},
    {"group:system", "system.env.set", 0, 0},
    {"group:core", "core.check", 1, 1},
    {"group:core", "core.health", 0, 0},
    {"effect:read", "files.list", 1, 1},
    {"effect:read", "files.move", 0, 1},
    {"effect:read,write", "files.copy", 1, 1},
    {"effect:read,write", "files.move", 0, 1},
    {"effect:exec", "terminal.create", 0, 1},
    {"effect:exec", "commands.run", 1, 1},
    {"effect:admin", "core.metrics", 0, 1},
    {"*", "files.list", 1, 1},
    {"*", "core.metrics", 0, 1},
    {"*", "terminal.create", 0, 1},
};

static void
test_reach(void **state)
{
	uint16_t op;
	size_t i;

	for (i = 0; i < nitems(rows); i++) {
		op = op_find(rows[i].op);
		assert_int_not_equal(op, OP_NONE);
		if (selector_matches(rows[i].sel, op, 0) != rows[i].allow ||
		    selector_matches(rows[i].sel, op, 1) != rows[i].deny)
			fail_msg("%s on %s", rows[i].sel, rows[i].op);
	}
}

static void
test_rank(void **state)
{
	static const struct {
		const char *sel;
		enum sel_rank rank;
		int known;
	} ranks[] = {{"files.list", SEL_EXACT, 1}, {"files.*", SEL_LEVEL, 1},
	    {"agents.**", SEL_DEEP, 1}, {"group:files", SEL_GROUP, 1},
	    {"effect:read,write", SEL_EFFECT, 1}, {"*", SEL_STAR, 1},
	    {"files.downlaod", SEL_EXACT, 0}, {"nothing.*", SEL_LEVEL, 0},
	    {"group:nothing", SEL_BAD, 0}, {"effect:", SEL_BAD, 0},
	    {"effect:reed", SEL_BAD, 0}, {"effect:read,", SEL_BAD, 0},
	    {"", SEL_BAD, 0}, {".*", SEL_BAD, 0}, {"**", SEL_BAD, 0},
	    {"Files.list", SEL_BAD, 0}, {"files list", SEL_BAD, 0},
	    {"files.", SEL_BAD, 0}};
	size_t i;

	for (i = 0; i < nitems(ranks); i++)
		if (selector_rank(ranks[i].sel) != ranks[i].rank ||
		    selector_known(ranks[i].sel) != ranks[i].known)
			fail_msg("%s", ranks[i].sel);
}

static void
test_suggest(void **state)
{
	static const struct {
		const char *sel, *want;
	} asks[] = {{"files.downlaod", "files.download"}, {"file.*", "files.*"},
	    {"fs.download", "files.download"}, {"group:file", "group:files"},
	    {"effect:exce", "effect:exec"}};
	size_t i;

	for (i = 0; i < nitems(asks); i++) {
		assert_non_null(selector_suggest(asks[i].sel));
		assert_string_equal(
		    selector_suggest(asks[i].sel), asks[i].want);
	}
	assert_null(selector_suggest("quite.something-else"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_reach),
	    cmocka_unit_test(test_rank),
	    cmocka_unit_test(test_suggest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
