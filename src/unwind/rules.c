/* SPDX-License-Identifier: MIT */
/* rules.c - sets of unwinding rules, each held once; see rules.h */
#include "unwind/rules.h"

#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>

/* The ids that every file has are of empty rules. */
static int add_fixed_rules(struct seam_unwind_rules *rules)
{
	if (rules->rules.n)
		return 0;
	if (!SEAM_ARRAY_RESERVE(&rules->rules, SEAM_UNWIND_BAD_CFI + 1))
		return -ENOMEM;
	for (int id = 0; id <= SEAM_UNWIND_BAD_CFI; id++)
		rules->rules.items[rules->rules.n++] =
			(struct seam_unwind_rule) { 0 };
	return 0;
}

/* @row without what is SAME, which goes to @saved. */
static struct seam_unwind_rule pack(const struct seam_unwind_row *row,
				    struct seam_unwind_saved *saved)
{
	struct seam_unwind_rule rule = {
		.cfa_value = row->cfa_value,
		.cfa_how = row->cfa_how,
		.cfa_column = row->cfa_column,
		.is_signal_frame = row->is_signal_frame,
	};

	for (uint64_t left = row->columns; left; left &= left - 1) {
		size_t i = (size_t)__builtin_ctzll(left);

		saved[rule.n_saved++] = (struct seam_unwind_saved) {
			.value = row->value[i], .column = (uint8_t)i,
			.how = row->how[i],
		};
	}
	return rule;
}

/* What is saved is hashed as words. */
_Static_assert(sizeof(struct seam_unwind_saved) == sizeof(uint64_t),
	       "a saved register is a word");

static uint64_t hash_of(const struct seam_unwind_rule *rule,
			const struct seam_unwind_saved *saved)
{
	uint64_t head = (uint64_t)(uint32_t)rule->cfa_value << 32 |
			(uint64_t)rule->cfa_how << 16 |
			(uint64_t)rule->cfa_column << 8 | rule->is_signal_frame;
	seam_u128 hash = seam_hash_words(saved, rule->n_saved, head);

	return (uint64_t)(hash >> 64) ^ (uint64_t)hash;
}

/* Whether @a, of @rules, is @b with its @saved. */
static bool is_equal(const struct seam_unwind_rules *rules,
		     const struct seam_unwind_rule *a,
		     const struct seam_unwind_rule *b,
		     const struct seam_unwind_saved *saved)
{
	return a->cfa_value == b->cfa_value && a->cfa_how == b->cfa_how &&
	       a->cfa_column == b->cfa_column &&
	       a->is_signal_frame == b->is_signal_frame &&
	       a->n_saved == b->n_saved &&
	       memcmp(rules->saved.items + a->first_saved, saved,
		      a->n_saved * sizeof(*saved)) == 0;
}

/* A new rule; its id. */
static int add_rule(struct seam_unwind_rules *rules,
		    struct seam_unwind_rule *rule,
		    const struct seam_unwind_saved *saved, uint64_t hash)
{
	uint32_t id;

	if (add_fixed_rules(rules) < 0)
		return -ENOMEM;
	id = (uint32_t)rules->rules.n;
	if (id == SEAM_UNWIND_MAX_RULES)
		return -EOVERFLOW;
	if (!SEAM_ARRAY_RESERVE(&rules->saved, SEAM_UNWIND_COLUMNS) ||
	    !SEAM_ARRAY_RESERVE(&rules->rules, 1) ||
	    seam_index_add(&rules->rule_index, hash, id) < 0)
		return -ENOMEM;
	rule->first_saved = (uint32_t)rules->saved.n;
	memcpy(rules->saved.items + rules->saved.n, saved,
	       rule->n_saved * sizeof(*saved));
	rules->saved.n += rule->n_saved;
	rules->rules.items[rules->rules.n++] = *rule;
	return (int)id;
}

int seam_unwind_rules_intern(struct seam_unwind_rules *rules,
			     const struct seam_unwind_row *row)
{
	struct seam_unwind_saved saved[SEAM_UNWIND_COLUMNS];
	struct seam_unwind_rule rule = pack(row, saved);
	uint64_t hash = hash_of(&rule, saved);
	uint32_t id = SEAM_INDEX_FIND(&rules->rule_index, hash, i,
		is_equal(rules, &rules->rules.items[i], &rule, saved));

	return id != SEAM_NONE ? (int)id : add_rule(rules, &rule, saved, hash);
}

int seam_unwind_rules_expression(struct seam_unwind_rules *rules,
				 struct seam_bytes expression)
{
	uint64_t hash = seam_hash_bytes(expression.data, expression.size, 0);
	struct seam_index_probe probe =
		seam_index_probe(&rules->expression_index, hash);
	uint16_t size = (uint16_t)expression.size;
	uint8_t *at;
	uint32_t id;

	while ((id = seam_index_next(&rules->expression_index, &probe)) !=
	       SEAM_NONE) {
		struct seam_bytes other = seam_unwind_rules_borrow_expression(
			rules, (int32_t)id);

		if (other.size == expression.size &&
		    memcmp(other.data, expression.data, other.size) == 0)
			return (int)id;
	}
	if (expression.size > UINT16_MAX ||
	    rules->expressions.n + expression.size >
		    SEAM_UNWIND_MAX_EXPRESSIONS)
		return -EOVERFLOW;
	id = (uint32_t)rules->expressions.n;
	if (!SEAM_ARRAY_RESERVE(&rules->expressions, sizeof(size) + size) ||
	    seam_index_add(&rules->expression_index, hash, id) < 0)
		return -ENOMEM;
	at = rules->expressions.items + id;
	memcpy(at, &size, sizeof(size));
	memcpy(at + sizeof(size), expression.data, size);
	rules->expressions.n += sizeof(size) + size;
	return (int)id;
}

void seam_unwind_rules_fini(struct seam_unwind_rules *rules)
{
	free(rules->rules.items);
	free(rules->saved.items);
	free(rules->expressions.items);
	seam_index_fini(&rules->rule_index);
	seam_index_fini(&rules->expression_index);
	*rules = (struct seam_unwind_rules) { 0 };
}
