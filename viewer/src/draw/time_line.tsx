/* SPDX-License-Identifier: MIT */
/* time_line.tsx - place of the time line */
import type { Profile } from "../profile";
import type { Selection } from "../select";

export interface TimeLineProps {
	profile: Profile;
	selection: Selection;
	select: (next: Selection) => void;
}

export function TimeLine({ profile }: TimeLineProps) {
	return <p>{profile.threads.length} threads</p>;
}
