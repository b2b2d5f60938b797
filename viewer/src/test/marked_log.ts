/* SPDX-License-Identifier: MIT */
/*
 * marked_log.ts - an XRay log with marks around its calls, for tests
 *
 * A mark has the time of the record before it, so an interval that is marked
 * after a call's entry and after its exit begins and lasts as the call does:
 * the program's own calls are what intervals are compared with.
 */

/* What is put after the entry or the exit of a call; "": nothing. */
export type MarkOf = (func: number, isEntry: boolean) => string;

const WIDE = 16;		/* bytes of a metadata record */
const EXTENTS = 0x0f, CUSTOM = 0x0b, TYPED = 0x11, HEADER = 32;

function customEvent(text: string): Buffer {
	const record = Buffer.alloc(WIDE + text.length);

	record[0] = CUSTOM;
	record.writeUInt32LE(text.length, 1);
	record.write(text, WIDE, "latin1");
	return record;
}

/* The records of a block, with marks between them. */
function markBlock(block: Buffer, mark: MarkOf): Buffer {
	const out: Buffer[] = [], open: number[] = [];

	for (let at = 0; at < block.length;) {
		const kind = block[at]!, isWide = (kind & 1) === 1;
		const size = !isWide ? 8 : kind === CUSTOM || kind === TYPED ?
			     WIDE + block.readUInt32LE(at + 1) : WIDE;
		const func = isWide ? -1 : block.readUInt32LE(at) >>> 4;
		const isEntry = (kind >> 1 & 7) % 3 === 0;

		out.push(block.subarray(at, at + size));
		at += size;
		if (isWide)
			continue;
		if (isEntry)
			open.push(func);
		else if (open.pop() !== func)
			throw new Error("the log has a repair");
		const text = mark(func, isEntry);

		if (text)
			out.push(customEvent(text));
	}
	return Buffer.concat(out);
}

export function markLog(log: Buffer, mark: MarkOf): Buffer {
	const out = [log.subarray(0, HEADER)];

	for (let at = HEADER; at < log.length;) {
		if (log[at] !== EXTENTS)
			throw new Error("a block has no extents");
		const size = Number(log.readBigUInt64LE(at + 1));
		const extents = Buffer.from(log.subarray(at, at + WIDE));
		const block = markBlock(log.subarray(at + WIDE,
						     at + WIDE + size), mark);

		extents.writeBigUInt64LE(BigInt(block.length), 1);
		out.push(extents, block);
		at += WIDE + size;
	}
	return Buffer.concat(out);
}
