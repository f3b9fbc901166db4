#undef TRACE_SYSTEM
#define TRACE_SYSTEM readahead

#include <linux/tracepoint.h>

TRACE_EVENT(fixed_window,
	TP_PROTO(struct inode *inode, pgoff_t start),
	TP_ARGS(inode, start),
	TP_STRUCT__entry(__field(pgoff_t, start))
);

#include <trace/define_trace.h>
