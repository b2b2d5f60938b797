/* SPDX-License-Identifier: MIT */
/*
 * slices.ts - long work in slices that leave time for the next frame
 *
 * A generator yields where it can pause, at least each 4 ms; the page answers
 * between two slices.
 */

const SLICE_MS = 8;

/*
 * Run @work and call @done with its result.  The first slice runs at once, so
 * that small recordings need no second frame.  Returns a function that ends it.
 */
export function runInSlices<T>(work: Generator<void, T>,
			       done: (value: T) => void): () => void {
	const channel = new MessageChannel();
	let ended = false;

	const slice = () => {
		const until = performance.now() + SLICE_MS;

		while (!ended && performance.now() < until) {
			const step = work.next();

			if (step.done) {
				ended = true;
				channel.port1.close();
				done(step.value);
			}
		}
		/* a message is not held back as a timer is */
		if (!ended)
			channel.port2.postMessage(0);
	};

	channel.port1.onmessage = slice;
	slice();
	return () => {
		ended = true;
		channel.port1.close();
	};
}

/* All of @work at once. */
export function runAtOnce<T>(work: Generator<void, T>): T {
	for (;;) {
		const step = work.next();

		if (step.done)
			return step.value;
	}
}
