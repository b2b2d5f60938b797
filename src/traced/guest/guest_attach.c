/* SPDX-License-Identifier: MIT */
/*
 * guest_attach.c - find the VMs in this process; see guest_sample.h
 *
 * Outside handlers.  Every loaded image is looked at once, by its own handle:
 * a library that was loaded for a plugin alone is in no global scope.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

#include "base/file.h"
#include "traced/guest/guest_adapter.h"
#include "unwind/in_process/loaded_images.h"
#include "unwind/in_process/self_readers.h"

enum { MAX_REFUSED = 16 };

const struct seam_guest_vm *seam_guest_adapters[SEAM_GUEST_MAX_ADAPTERS] = {
	&seam_luajit_vm,
};

static char refusal[SEAM_GUEST_MAX_REFUSAL];
/* What was refused is not tried again while it stays loaded. */
static const void *refused[MAX_REFUSED];
static size_t n_refused;
/* At the last look. */
static struct seam_self_loads loads;

/* --- images --- */

static void *find_symbol(void *image, const char *name)
{
	return dlsym(image, name);
}

/* The name of the image that has @key, without its folders. */
static void copy_name(const void *key, char *name, size_t size)
{
	Dl_info info;
	bool has_name = dladdr(key, &info) && info.dli_fname &&
			info.dli_fname[0];

	snprintf(name, size, "%s",
		 has_name ? seam_file_name(info.dli_fname) : "program");
}

/* The loader's entry of the image that has @key, or NULL. */
static const struct link_map *find_map(const void *key)
{
	struct link_map *map = NULL;
	Dl_info info;

	return dladdr1(key, &info, (void **)&map, RTLD_DL_LINKMAP) ? map :
								     NULL;
}

/* --- slots --- */

static bool is_known(const void *key)
{
	for (size_t i = 0; i < n_refused; i++)
		if (refused[i] == key)
			return true;
	for (size_t i = 0; i < SEAM_GUEST_MAX_VMS; i++)
		if (seam_guest_slots[i].key == key &&
		    atomic_load(&seam_guest_slots[i].state) ==
			    SEAM_GUEST_USED)
			return true;
	return false;
}

static void refuse(const void *key, const char *reason)
{
	char name[64];

	copy_name(key, name, sizeof(name));
	snprintf(refusal, sizeof(refusal), "%s: %s", name, reason);
	if (n_refused < MAX_REFUSED)
		refused[n_refused++] = key;
}

/* No handler that begins now uses it; free it when none that began does. */
static void free_slot(struct seam_guest_slot *slot)
{
	if (atomic_exchange(&slot->state, SEAM_GUEST_LEAVING) !=
	    SEAM_GUEST_LEAVING) {
		seam_self_remove_adapter(&slot->adapter);
		slot->left = seam_self_retire();
	}
	if (!seam_self_unused(slot->left))
		return;
	slot->vm->detach(slot->object);
	atomic_store(&slot->state, SEAM_GUEST_FREE);
}

static struct seam_guest_slot *find_free(void)
{
	for (size_t i = 0; i < SEAM_GUEST_MAX_VMS; i++)
		if (atomic_load(&seam_guest_slots[i].state) ==
		    SEAM_GUEST_FREE)
			return &seam_guest_slots[i];
	return NULL;
}

/* Fill @slot, in use for this thread alone until it is proven. */
static bool try_slot(struct seam_guest_slot *slot,
		     const struct seam_guest_vm *vm, void *object,
		     const void *key, char *reason, size_t size)
{
	const struct link_map *map = find_map(key);
	bool is_proven;

	*slot = (struct seam_guest_slot) {
		.adapter = { .has_code = seam_guest_has_code,
			     .adapter = { seam_guest_step, slot } },
		.vm = vm, .object = object, .key = key,
		.dynamic = map ? map->l_ld : NULL };
	copy_name(key, slot->name, sizeof(slot->name));
	atomic_store(&slot->state, SEAM_GUEST_TRIAL);
	if (seam_self_add_adapter(&slot->adapter) < 0) {
		snprintf(reason, size, "too many adapters");
		vm->detach(object);
		atomic_store(&slot->state, SEAM_GUEST_FREE);
		return false;
	}
	seam_guest_is_proving = true;
	is_proven = vm->prove(object, reason, size);
	seam_guest_is_proving = false;
	if (is_proven)
		atomic_store(&slot->state, SEAM_GUEST_USED);
	else
		free_slot(slot);
	return is_proven;
}

static void attach(const struct seam_guest_vm *vm, void *image)
{
	char reason[SEAM_GUEST_MAX_REFUSAL - 64] = "";
	struct seam_guest_slot *slot = find_free();
	const void *key = dlsym(image, vm->symbol);
	void *object;

	if (!key || is_known(key))
		return;
	if (!slot) {
		refuse(key, "too many virtual machines");
		return;
	}
	object = vm->attach(find_symbol, image, reason, sizeof(reason));
	/* no object and no reason: it is no machine of that kind */
	if (object ? !try_slot(slot, vm, object, key, reason, sizeof(reason)) :
		     reason[0] != '\0')
		refuse(key, reason);
}

/* --- a look at all images --- */

static void attach_all(const struct seam_loaded_images *images)
{
	for (size_t i = 0; i < images->n; i++) {
		const char *name = images->list[i].name;
		/* NULL is the program; no image is loaded once more */
		void *image = i && !name[0] ? NULL :
			      dlopen(name[0] ? name : NULL,
				     RTLD_LAZY | RTLD_NOLOAD);

		if (!image)
			continue;
		for (size_t k = 0; k < SEAM_GUEST_MAX_ADAPTERS; k++)
			if (seam_guest_adapters[k])
				attach(seam_guest_adapters[k], image);
		dlclose(image);
	}
}

/* Whether what @key is in is still loaded, and no other image at its place. */
static bool is_loaded(const struct seam_guest_slot *slot)
{
	const struct link_map *map = find_map(slot->key);
	char name[64];

	if (!map || map->l_ld != slot->dynamic)
		return false;
	/* the program stays; its title may be written over its name */
	if (!map->l_name[0])
		return true;
	copy_name(slot->key, name, sizeof(name));
	return strcmp(name, slot->name) == 0;
}

static void detach_unloaded(void)
{
	for (size_t i = 0; i < SEAM_GUEST_MAX_VMS; i++) {
		struct seam_guest_slot *slot = &seam_guest_slots[i];

		if (atomic_load(&slot->state) == SEAM_GUEST_USED &&
		    !is_loaded(slot))
			free_slot(slot);
	}
	/* addresses may be used again */
	n_refused = 0;
}

static int result(void)
{
	for (size_t i = 0; i < SEAM_GUEST_MAX_VMS; i++)
		if (atomic_load(&seam_guest_slots[i].state) ==
		    SEAM_GUEST_USED)
			return 0;
	return n_refused ? -ENOTSUP : -ENOENT;
}

int seam_guest_refresh(void)
{
	struct seam_loaded_images *images;

	for (size_t i = 0; i < SEAM_GUEST_MAX_VMS; i++)
		if (atomic_load(&seam_guest_slots[i].state) ==
		    SEAM_GUEST_LEAVING)
			free_slot(&seam_guest_slots[i]);
	if (seam_self_loads_equal(loads, seam_self_loads_now()))
		return result();
	images = seam_loaded_images_list();
	if (!images)
		return -ENOMEM;
	if (images->loads.n_subs != loads.n_subs)
		detach_unloaded();
	attach_all(images);
	loads = images->loads;
	seam_loaded_images_free(images);
	return result();
}

int seam_guest_init(void)
{
	int r = seam_guest_ids_init();

	return r < 0 ? r : seam_guest_refresh();
}

const char *seam_guest_refusal(void)
{
	return refusal;
}
