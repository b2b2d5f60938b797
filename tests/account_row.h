/* SPDX-License-Identifier: MIT */
/* account_row.h - what an account says of one function */
#ifndef SEAM_TEST_ACCOUNT_ROW_H
#define SEAM_TEST_ACCOUNT_ROW_H

#include "model/xray/account.h"

/* NULL: nothing. */
static inline const struct seam_account_row *
account_row(const struct seam_account *account, uint32_t function)
{
	for (size_t i = 0; i < account->rows.n; i++)
		if (account->rows.items[i].function == function)
			return &account->rows.items[i];
	return NULL;
}

#endif /* SEAM_TEST_ACCOUNT_ROW_H */
