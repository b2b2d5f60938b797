/* SPDX-License-Identifier: MIT */
/* luajit_vm.c - the adapter's functions outside handlers; luajit_vm.h */
#include "traced/guest/luajit/luajit_vm.h"

#include <stdlib.h>

#include "traced/guest/guest_vms.h"
#include "traced/guest/luajit/calibrate.h"

/* The calibration that runs, and whether it is done. */
static struct seam_luajit_calibration *calibration;
static bool is_calibrated;

static int run_calibration(struct seam_lua *lua)
{
	calibration->lua = lua;
	calibration->api->openlibs(lua);
	is_calibrated = seam_luajit_calibrate(calibration);
	return 0;
}

static bool calibrate(struct seam_luajit_object *object, char *reason,
		      size_t size)
{
	struct seam_luajit_calibration c = {
		.api = &object->api, .layout = &object->lj,
		.reason = reason, .reason_size = size };
	const char *failure;

	calibration = &c;
	is_calibrated = false;
	failure = seam_lua_protect(&object->api, run_calibration);
	return failure ? seam_luajit_refuse(&c, "%s", failure) : is_calibrated;
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
