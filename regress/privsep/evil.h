/*
 * SPDX-License-Identifier: ISC
 *
 * What the parts of evil share.  Each test gets the laboratory as its state
 * and leaves it fresh.
 */
#ifndef ABX_EVIL_H
#define ABX_EVIL_H

#include "regress/privsep/lab.h"

/* Directory of the programs, and the program that stands in for one. */
extern const char *evil_build, *evil_standin;
/* Who starts abxd when we are root; NULL: root. */
extern const char *evil_user;

/* evil_service.c */
void service_listener(void **);
void service_pathd(void **);
void service_execd(void **);
void service_limit(void **);
void service_log_flood(void **);
int service_end(void **);

/* evil_control.c */
void control_words(void **);
void control_deaf(void **);
void control_crowd(void **);
void control_stranger(void **);
void control_reload(void **);

/* evil_solo.c */
int solo_begin(void **);
int solo_finish(void **);
void solo_types_listener(void **);
void solo_types_pathd(void **);
void solo_types_execd(void **);
void solo_lengths(void **);
void solo_listener(void **);
void solo_late(void **);
void solo_blocking(void **);
void solo_pathd(void **);
void solo_execd(void **);

/* evil_matrix.c */
/* Check what must hold behind a case and make the laboratory fresh: exactly
 * one log line and one PC_BROKEN when the sender was to be broken, none else,
 * everything said to the others well-formed, no descriptor left.  What is
 * wrong is said and counted; too much of it ends the test. */
void evil_verdict(
    struct lab *, enum proc_kind from, const char *what, int broken);
extern int evil_failures;
void matrix_listener(void **);
void matrix_pathd(void **);
void matrix_execd(void **);
void matrix_numbers(void **);
void matrix_orphan(void **);
void matrix_lengths(void **);
void matrix_bytes(void **);

/* evil_packets.c */
void packets_odd(void **);
void packets_end(void **);
void descriptors_odd(void **);
void descriptors_facts(void **);
void descriptors_args(void **);
void descriptors_bulk(void **);
void descriptors_peer(void **);

/* evil_lies.c */
void lies_facts(void **);
void lies_success(void **);
void lies_late(void **);
void lies_slow(void **);
void flood_polite(void **);
void flood_listener(void **);
void flood_deaf_pathd(void **);
void silence_execd(void **);
void silence_others(void **);

#endif
