/* SPDX-License-Identifier: MIT */
/* found.ts - which functions the selection's search finds */
import type { Profile } from "../profile";
import { matches } from "../views/table";

/* By function 1 where it is found; null: there is no search. */
export function foundFunctions(profile: Profile, search: string):
		Uint8Array | null {
	return search === "" ? null :
	       Uint8Array.from({ length: profile.functions.n }, (_, func) =>
		       matches(profile, func, search) ? 1 : 0);
}
