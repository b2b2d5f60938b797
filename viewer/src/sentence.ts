/* SPDX-License-Identifier: MIT */
/* sentence.ts - the answer of a comparison of calls in words */
import { leafOf, partName, placeOf, type Causes } from "./engine/causes";
import { NONE } from "./profile";
import { formatMean, formatNs, functionName, nounOf, plural, shortName }
	from "./text";

export interface Answer {
	groups: string;		/* which calls are compared */
	cause: string;		/* what differs most */
	rest: string;		/* what differs next; "" */
}

function groupsText(causes: Causes): string {
	const { slow, fast } = causes, { profile } = slow.chosen;
	const name = functionName(profile, causes.func);
	const noun = nounOf(profile, causes.func);
	const text = `${plural(slow.n, noun)} of ${name} of this length ` +
		`take ${formatNs(slow.ns)} each on average`;

	if (!fast)
		return `${text}; there are no others.`;
	return `${text}; the ${plural(fast.n, causes.fastAreLonger ?
		"longer one" : "shorter one")} ${formatNs(fast.ns)}.`;
}

export function answerOf(causes: Causes): Answer {
	const { slow, fast, parts } = causes, { profile } = slow.chosen;
	const name = (func: number) => shortName(profile.functions.name[func]!);
	const [first, second] = causes.fastAreLonger ?
		[...parts].reverse() : parts;
	const groups = groupsText(causes);

	if (!first || !fast)
		return { groups, cause: "", rest: "" };
	const more = Math.abs(slow.ns - fast.ns);
	const ns = Math.abs(first.slow - first.fast);
	const place = placeOf(causes, first), leaf = leafOf(causes, first);
	const where = [place === NONE ? "" : `in ${name(place)}`,
		leaf === NONE || leaf === place ? "" :
		`most samples in ${name(leaf)}`].filter(Boolean).join(", ");
	const next = second ? Math.abs(second.slow - second.fast) : 0;

	return {
		groups,
		cause: `What differs most: ${shortName(partName(first))}, ` +
			`${formatMean(ns, "ns")} ${causes.fastAreLonger ?
			"less" : "more"} ${nounOf(profile,
			causes.func) === "call" ? "a call" : "an interval"} (of ${formatMean(more, "ns")})` +
			`${where ? `, ${where}` : ""}.`,
		rest: second && next > more / 10 ? `Next: ${shortName(
			partName(second))}, ${formatMean(next, "ns")} a call.` :
			"",
	};
}
