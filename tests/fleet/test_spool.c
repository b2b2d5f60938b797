/* SPDX-License-Identifier: MIT */
/* Notes are the texts of their files here, each with a comma. */
#include "unit.h"

#include "fleet/spool.h"
#include "folder.h"

static int make_note(void *context, struct seam_bytes file,
		     struct seam_bytes *note)
{
	char *text = malloc(file.size + 1);

	/* the end of the line becomes a comma */
	snprintf(text, file.size + 1, "%.*s,", (int)file.size - 1,
		 (const char *)file.data);
	*note = (struct seam_bytes) { (uint8_t *)text, strlen(text) };
	return 0;
}

static int append(void *context, struct seam_bytes note)
{
	strncat(context, (const char *)note.data, note.size);
	return 0;
}

static struct seam_spool spool_of(uint64_t max_bytes)
{
	struct seam_spool s;

	assert_int_equal(seam_spool_open(&s, folder, max_bytes, NULL), 0);
	return s;
}

/* A file that begins with @text, and takes a block. */
static void put(struct seam_spool *s, const char *text)
{
	char line[64];

	snprintf(line, sizeof(line), "%s\n", text);
	assert_int_equal(seam_spool_put(s, (struct seam_bytes) {
		(const uint8_t *)line, strlen(line) }, make_note, NULL, NULL),
		0);
}

/* All notes, in no order, and they are used up. */
static const char *notes(struct seam_spool *s)
{
	static char text[256];

	*text = 0;
	assert_int_equal(seam_spool_notes(s, append, text, NULL), 0);
	return text;
}

/* What the oldest file has, without its end of line; "": there is none. */
static const char *take(struct seam_spool_item *item, int dir)
{
	static char text[64];
	ssize_t n;

	if (seam_spool_take(item, dir, NULL) < 0)
		return "";
	n = pread(item->lock, text, sizeof(text), 0);
	assert_true(n > 0);
	text[n - 1] = 0;
	return text;
}

static int file(const char *name, const char *text)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	return close(fd);
}

static uint64_t n_files(int dir)
{
	uint64_t n, bytes, n_notes;

	assert_int_equal(seam_spool_count(dir, &n, &bytes, &n_notes), 0);
	return n;
}

UNIT_TEST(files_come_out_in_order_and_once_over_restarts)
{
	struct seam_spool s = spool_of(1 << 20);
	struct seam_spool_item item;
	const char *texts[] = { "one", "two", "three", "four" };

	put(&s, "one");
	put(&s, "two");
	seam_spool_close(&s);
	s = spool_of(1 << 20);
	put(&s, "three");
	put(&s, "four");
	for (size_t i = 0; i < 4; i++) {
		assert_string_equal(take(&item, s.folder), texts[i]);
		/* it was not sent */
		seam_spool_release(&item);
		assert_string_equal(take(&item, s.folder), texts[i]);
		assert_int_equal(seam_spool_sent(&item, NULL), 0);
	}
	assert_string_equal(take(&item, s.folder), "");
	assert_string_equal(notes(&s), "");
	seam_spool_close(&s);
}

UNIT_TEST(one_process_writes_and_one_sends)
{
	struct seam_spool s = spool_of(1 << 20), second;
	struct seam_spool_item item, other;
	struct seam_err err = { 0 };

	put(&s, "one");
	assert_int_equal(seam_spool_open(&second, folder, 1, &err), -EBUSY);
	assert_non_null(strstr(err.cause[0], "--spool"));
	assert_string_equal(take(&item, s.folder), "one");
	assert_int_equal(seam_spool_take(&other, s.folder, NULL), -EAGAIN);
	seam_spool_release(&item);
	seam_spool_close(&s);
}

UNIT_TEST(a_full_spool_drops_old_files_but_the_oldest_and_notes_them)
{
	struct seam_spool s = spool_of(3 * 4096);
	struct seam_spool_item item;
	char name[8];

	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "%d", i);
		put(&s, name);
		assert_int_equal(n_files(s.folder), i < 3 ? i + 1 : 3);
	}
	/* of 0..7 are left 0, 6 and 7 */
	assert_string_equal(take(&item, s.folder), "0");
	seam_spool_sent(&item, NULL);
	assert_string_equal(take(&item, s.folder), "6");
	seam_spool_release(&item);
	{
		const char *text = notes(&s);

		assert_int_equal(strlen(text), 10);
		for (int i = 1; i < 6; i++)
			assert_non_null(strchr(text, '0' + i));
	}
	/* a file that was sent makes room */
	put(&s, "8");
	assert_int_equal(n_files(s.folder), 3);
	assert_string_equal(notes(&s), "");
	seam_spool_close(&s);
}

UNIT_TEST(a_file_that_is_being_sent_is_not_dropped)
{
	struct seam_spool s = spool_of(2 * 4096);
	struct seam_spool_item item;

	put(&s, "0");
	put(&s, "1");
	assert_string_equal(take(&item, s.folder), "0");
	seam_spool_sent(&item, NULL);
	assert_string_equal(take(&item, s.folder), "1");
	put(&s, "2");
	put(&s, "3");
	assert_int_equal(n_files(s.folder), 2);
	assert_int_equal(seam_spool_sent(&item, NULL), 0);
	assert_string_equal(notes(&s), "2,");
	assert_string_equal(take(&item, s.folder), "3");
	seam_spool_release(&item);
	seam_spool_close(&s);
}

UNIT_TEST(a_refused_file_becomes_a_note)
{
	struct seam_spool s = spool_of(1 << 20);
	struct seam_spool_item item;

	put(&s, "bad");
	put(&s, "good");
	assert_string_equal(take(&item, s.folder), "bad");
	assert_int_equal(seam_spool_refused(&item, (struct seam_bytes) {
		(const uint8_t *)"bad,", 4 }, NULL), 0);
	assert_string_equal(take(&item, s.folder), "good");
	seam_spool_release(&item);
	assert_string_equal(notes(&s), "bad,");
	/* no file has it yet */
	assert_string_equal(notes(&s), "bad,");
	put(&s, "next");
	assert_string_equal(notes(&s), "");
	seam_spool_close(&s);
}

/* At each moment of a put. */
UNIT_TEST(a_killed_writer_loses_no_note_and_uses_none_twice)
{
	struct seam_spool s;
	struct seam_spool_item item;

	/* file 7 was being written: the note waits again */
	file("00000000000000000003.gone-00000000000000000007", "3,");
	file("00000000000000000004.gone", "4,");
	file("00000000000000000007.part", "half of");
	s = spool_of(1 << 20);
	assert_true(strcmp(notes(&s), "3,4,") == 0 ||
		    strcmp(notes(&s), "4,3,") == 0);
	assert_int_equal(s.next, 8);
	put(&s, "8");
	seam_spool_close(&s);
	/* file 9 was there: it has the note, and was sent since then */
	file("00000000000000000005.gone-00000000000000000009", "5,");
	s = spool_of(1 << 20);
	assert_string_equal(notes(&s), "");
	assert_string_equal(take(&item, s.folder), "8");
	seam_spool_sent(&item, NULL);
	/* a note, and its file is there: it was dropped */
	file("00000000000000000010.batch", "10\n");
	file("00000000000000000010.gone", "10,");
	assert_string_equal(take(&item, s.folder), "");
	assert_string_equal(notes(&s), "10,");
	seam_spool_close(&s);
}

UNIT_TEST(a_put_that_fails_leaves_the_notes)
{
	struct seam_spool s = spool_of(1 << 20);

	file("00000000000000000001.gone", "1,");
	assert_string_equal(notes(&s), "1,");
	/* a name that cannot be made */
	file("00000000000000000001.part", "");
	assert_true(seam_spool_put(&s, (struct seam_bytes) {
		(const uint8_t *)"x", 1 }, make_note, NULL, NULL) < 0);
	assert_string_equal(notes(&s), "1,");
	seam_spool_close(&s);
}

UNIT_TEST(other_names_and_links_are_left_alone)
{
	struct seam_spool s;
	struct seam_spool_item item;
	char path[128];

	file("7.batch", "short name");
	file("00000000000000000007.batch~", "not ours");
	file("status.json", "{}");
	file("secret", "not to be sent");
	snprintf(path, sizeof(path), "%s/00000000000000000001.batch", folder);
	assert_int_equal(symlink("secret", path), 0);
	s = spool_of(1 << 20);
	assert_int_equal(n_files(s.folder), 0);
	assert_string_equal(take(&item, s.folder), "");
	seam_spool_close(&s);
}

UNIT_MAIN(NULL, NULL, make_folder, drop_folder)
