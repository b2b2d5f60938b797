/* SPDX-License-Identifier: MIT */
/* exporters.c - the formats of 'seam convert'; see exporter.h */
#include "export/exporter.h"

#include <errno.h>

#include "export/stacks/folded.h"
#include "export/xray/trace_json.h"
#include "export/xray/xray_log.h"
#include "export/xray/xray_yaml.h"

static int write_folded(const struct seam_export *export, struct seam_err *err)
{
	int r = seam_folded_write(export->selected, export->group,
				  export->by_weight, export->out);

	if (r == -EFBIG)
		return seam_err_set(err, r, "cannot convert: the lines are "
				    "more than 4 GiB; choose a part with "
				    "--time, --thread or --layer");
	return r ? seam_err_set(err, r, "cannot convert: %s", strerror(-r)) :
	       0;
}

static int write_trace_json(const struct seam_export *export,
			    struct seam_err *err)
{
	return seam_trace_json(export->out, export->trace, export->names,
			       export->problems, err);
}

static int write_xray_yaml(const struct seam_export *export,
			   struct seam_err *err)
{
	return seam_xray_yaml(export->out, export->trace, export->names,
			      export->problems, err);
}

static int write_xray_log(const struct seam_export *export,
			  struct seam_err *err)
{
	return seam_xray_log(export->out, export->trace, export->problems, err);
}

#define EXPORTER(name, needs, write, help) { name, needs, write },

static const struct seam_exporter exporters[] = { SEAM_EXPORTERS(EXPORTER) };

const struct seam_exporter *seam_exporter_find(const char *name)
{
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(exporters); i++)
		if (strcmp(exporters[i].name, name) == 0)
			return &exporters[i];
	return NULL;
}
