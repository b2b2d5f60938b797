/* SPDX-License-Identifier: MIT */
/* search.ts - what the selection's search finds: a part of a name */
import { NONE, type Profile } from "../profile";

export const findsName = (name: string, search: string): boolean =>
	name.toLowerCase().includes(search.toLowerCase());

/* A function is found by its name and by its module's path. */
export const findsFunction = (profile: Profile, func: number,
			      search: string): boolean => func !== NONE &&
	(findsName(profile.functions.name[func]!, search) ||
	 findsName(profile.modules.path[profile.functions.module[func]!]!,
		   search));

/* By function 1 where it is found; null: there is no search. */
export function foundFunctions(profile: Profile, search: string):
		Uint8Array | null {
	return search === "" ? null :
	       Uint8Array.from({ length: profile.functions.n }, (_, func) =>
		       findsFunction(profile, func, search) ? 1 : 0);
}
