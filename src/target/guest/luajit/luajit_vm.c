/* SPDX-License-Identifier: MIT */
/* luajit_vm.c - the adapter's functions outside handlers; luajit_vm.h */
#include "target/guest/luajit/luajit_vm.h"

#include <stdlib.h>

#include "target/guest/guest_vms.h"
#include "target/guest/luajit/calibrate.h"

static bool calibrate(struct seam_luajit_object *object, char *reason,
		      size_t size)
{
	struct seam_luajit_calibration c = {
		.api = &object->api, .layout = &object->lj.layout,
		.reason = reason, .reason_size = size };
	bool is_done;

	c.lua = object->api.newstate();
	if (!c.lua)
		return seam_luajit_refuse(&c, "cannot make a state");
	object->api.openlibs(c.lua);
	is_done = seam_luajit_calibrate(&c);
	object->api.close(c.lua);
	return is_done;
}

static void *attach(void *(*symbol)(void *image, const char *name),
		    void *image, char *reason, size_t size)
{
	struct seam_luajit_object *object = calloc(1, sizeof(*object));
	const char *missing;

	if (!object) {
		snprintf(reason, size, "out of memory");
		return NULL;
	}
	if (!seam_lua_api_find(&object->api, symbol, image, &missing)) {
		snprintf(reason, size, "it does not export %s", missing);
		free(object);
		return NULL;
	}
	if (!calibrate(object, reason, size)) {
		free(object);
		return NULL;
	}
	return object;
}

const struct seam_guest_vm seam_luajit_vm = {
	.interface = SEAM_GUEST_INTERFACE,
	.number = SEAM_GUEST_LUAJIT,
	.name = "LuaJIT",
	.symbol = "luaJIT_setmode",
	.attach = attach,
	.prove = seam_luajit_prove,
	.detach = free,
	.has_code = seam_luajit_has_code,
	.bridge = seam_luajit_bridge,
	.walk = seam_luajit_walk,
};
