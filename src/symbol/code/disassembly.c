/* SPDX-License-Identifier: MIT */
/* disassembly.c - capstone, one instruction at a time; see disassembly.h */
#include "symbol/code/disassembly.h"

#include <capstone/capstone.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <pthread.h>

#define TEXT_OF(x) #x
#define LIBRARY(major) "libcapstone.so." TEXT_OF(major)

/* Capstone's functions, of the types that its header declares. */
static struct {
	__typeof__(cs_open) *open;
	__typeof__(cs_close) *close;
	__typeof__(cs_malloc) *malloc;
	__typeof__(cs_free) *free;
	__typeof__(cs_disasm_iter) *disasm_iter;
} capstone;

/* "capstone" is written once under this, then only read. */
static pthread_once_t loaded = PTHREAD_ONCE_INIT;

struct decoder {
	csh handle;
	cs_insn *instruction;
	size_t unit;		/* bytes of the shortest instruction */
};

static void load_capstone(void)
{
	void *library = dlopen(LIBRARY(CS_API_MAJOR), RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return;
	capstone.open = (__typeof__(cs_open) *)dlsym(library, "cs_open");
	capstone.close = (__typeof__(cs_close) *)dlsym(library, "cs_close");
	capstone.malloc = (__typeof__(cs_malloc) *)dlsym(library,
							 "cs_malloc");
	capstone.free = (__typeof__(cs_free) *)dlsym(library, "cs_free");
	capstone.disasm_iter = (__typeof__(cs_disasm_iter) *)
		dlsym(library, "cs_disasm_iter");
}

int seam_disassembly_load(struct seam_err *err)
{
	pthread_once(&loaded, load_capstone);
	/* a library of this name has all of them */
	if (capstone.disasm_iter)
		return 0;
	return seam_err_set(err, -ENOTSUP, "cannot load %s (package "
			    "libcapstone%d)", LIBRARY(CS_API_MAJOR),
			    CS_API_MAJOR);
}

/* Capstone's names of an ELF machine. */
static bool find_machine(const struct seam_machine *machine, cs_arch *arch,
			 unsigned int *mode, size_t *unit)
{
	static const struct {
		uint32_t elf;
		cs_arch arch;
		unsigned int mode;
		uint8_t unit;
	} all[] = {
		{ EM_X86_64, CS_ARCH_X86, CS_MODE_64, 1 },
		{ EM_386, CS_ARCH_X86, CS_MODE_32, 1 },
		{ EM_AARCH64, CS_ARCH_ARM64, 0, 4 },
		{ EM_ARM, CS_ARCH_ARM, CS_MODE_ARM, 4 },
		{ EM_PPC64, CS_ARCH_PPC, CS_MODE_64, 4 },
		{ EM_PPC, CS_ARCH_PPC, CS_MODE_32, 4 },
		{ EM_S390, CS_ARCH_SYSZ, 0, 2 },
		{ EM_SPARCV9, CS_ARCH_SPARC, CS_MODE_V9, 4 },
		{ EM_MIPS, CS_ARCH_MIPS, 0, 4 },
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(all); i++) {
		if (all[i].elf != machine->elf_machine)
			continue;
		*arch = all[i].arch;
		*mode = all[i].mode;
		*unit = all[i].unit;
		if (all[i].elf == EM_MIPS)
			*mode |= machine->is_64 ? CS_MODE_MIPS64 :
				 CS_MODE_MIPS32;
		if (machine->is_big_endian)
			*mode |= (unsigned int)CS_MODE_BIG_ENDIAN;
		return true;
	}
	return false;
}

static void end(struct decoder *d)
{
	if (d->instruction)
		capstone.free(d->instruction, 1);
	if (d->handle)
		capstone.close(&d->handle);
}

static int begin(struct decoder *d, const struct seam_machine *machine,
		 struct seam_err *err)
{
	unsigned int mode = 0;
	cs_arch arch;
	int r = seam_disassembly_load(err);

	*d = (struct decoder) { 0 };
	if (r)
		return r;
	if (!find_machine(machine, &arch, &mode, &d->unit) ||
	    capstone.open(arch, (cs_mode)mode, &d->handle) != CS_ERR_OK)
		return seam_err_set(err, -ENOTSUP, "cannot disassemble for "
				    "machine %u (e_machine)",
				    machine->elf_machine);
	d->instruction = capstone.malloc(d->handle);
	return d->instruction ? 0 : seam_err_no_memory(err);
}

static void put_bytes(struct seam_instruction *out, struct seam_bytes code,
		      size_t n)
{
	size_t at = (size_t)snprintf(out->text, sizeof(out->text), ".byte ");

	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(out->text + at, sizeof(out->text) - at,
				       "%s0x%02x", i ? ", " : "",
				       code.data[i]);
	out->size = n;
}

/* The instruction at the start of @code, which is not empty, at @addr. */
static void decode(struct decoder *d, struct seam_bytes code, uint64_t addr,
		   struct seam_instruction *out)
{
	const uint8_t *at = code.data;
	size_t left = code.size;
	uint64_t next = addr;

	out->addr = addr;
	if (!capstone.disasm_iter(d->handle, &at, &left, &next,
				  d->instruction)) {
		put_bytes(out, code, code.size < d->unit ? code.size :
			  d->unit);
		return;
	}
	out->size = d->instruction->size;
	snprintf(out->text, sizeof(out->text), "%s%s%s",
		 d->instruction->mnemonic, *d->instruction->op_str ? " " : "",
		 d->instruction->op_str);
}

static struct seam_bytes from(const struct seam_code_block *code, size_t at)
{
	return (struct seam_bytes) {
		code->bytes.data + at, code->bytes.size - at,
	};
}

/*
 * Where to begin so that an instruction begins at the middle: where those
 * before it begin is not recorded.
 */
static size_t find_start(struct decoder *d, const struct seam_code_block *code)
{
	struct seam_instruction one;
	size_t middle = code->middle <= code->bytes.size ? code->middle : 0;

	for (size_t start = 0; start < middle; start++) {
		size_t at = start;

		while (at < middle) {
			decode(d, from(code, at), at, &one);
			at += one.size;
		}
		if (at == middle)
			return start;
	}
	return middle;
}

int seam_disassembly_walk(const struct seam_code_block *code,
			  seam_instruction_add *add, void *context,
			  struct seam_err *err)
{
	struct decoder d;
	struct seam_instruction one;
	int r = begin(&d, &code->machine, err);
	size_t at = r ? 0 : find_start(&d, code);

	for (; !r && at < code->bytes.size; at += one.size) {
		decode(&d, from(code, at), code->addr + at, &one);
		r = add(context, &one);
	}
	end(&d);
	return r;
}
