/* SPDX-License-Identifier: MIT */
/* tip_box.ts - puts a text beside the pointer, in an element of its own */

/* Fill @element with text nodes and place it at (@x, @y) of its parent. */
export function showTip(element: HTMLElement, title: string, lines: string[],
			x: number, y: number): void {
	const bold = document.createElement("b");

	bold.textContent = title;
	element.replaceChildren(bold, ...lines.map(line => {
		const span = document.createElement("span");

		span.textContent = line;
		return span;
	}));
	element.hidden = false;
	const box = element.getBoundingClientRect();
	const parent = element.offsetParent!.getBoundingClientRect();
	const toLeft = x + 14 + box.width > parent.width;
	const isBelow = parent.top + y + 18 + box.height <= innerHeight - 4;
	const left = Math.max(0, toLeft ? Math.min(x - 12, parent.width) -
			      box.width : x + 14);
	const top = isBelow ? y + 18 :
		    Math.max(4 - parent.top, y - 12 - box.height);

	element.style.transform = `translate(${Math.round(left)}px, ${
		Math.round(top)}px)`;
}

export function hideTip(element: HTMLElement | null): void {
	if (element)
		element.hidden = true;
}
