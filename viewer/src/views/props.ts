/* SPDX-License-Identifier: MIT */
/* props.ts - what every view gets */
import type { View } from "../hash";
import type { Profile } from "../profile";
import type { Selection } from "../select";

export interface ViewProps {
	profile: Profile;
	profiles: Profile[];	/* of the page */
	selection: Selection;
	view: View;
	select: (next: Selection) => void;
	/* Change other parts of the view, as one step of Back. */
	go: (part: Partial<View>) => void;
}
