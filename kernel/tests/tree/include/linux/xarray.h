/* A page cache index of our own for the tests: two levels, no large entries beyond what fits a node. */
#ifndef TEST_XARRAY_H
#define TEST_XARRAY_H
#include <linux/list.h>

#define NODE_SLOTS 512
#define ROOT_SLOTS 64

struct xa_node {
	struct list_head private_list;
	void *slots[NODE_SLOTS];
};

struct xarray {
	struct xa_node *nodes[ROOT_SLOTS];
};

struct xa_state {
	struct xarray *xa;
	unsigned long xa_index;
	unsigned int order;
	bool started;
};

#define XA_STATE(name, array, index) struct xa_state name = { .xa = (array), .xa_index = (index) }

void *xa_load(struct xarray *xa, unsigned long index);
void *xas_store(struct xa_state *xas, void *entry);
void *xas_find(struct xa_state *xas, unsigned long max);
void *xas_find_conflict(struct xa_state *xas);

static inline void xa_init_flags(struct xarray *xa, gfp_t flags)
{
	(void)xa, (void)flags;
}

static inline void xas_set_order(struct xa_state *xas, unsigned long index, unsigned int order)
{
	xas->xa_index = index;
	xas->order = order;
}

static inline void xas_set(struct xa_state *xas, unsigned long index)
{
	xas->xa_index = index;
	xas->started = false;
}

static inline int xas_error(const struct xa_state *xas)
{
	return xas->xa_index / NODE_SLOTS < ROOT_SLOTS ? 0 : -EINVAL;
}

static inline bool xas_nomem(struct xa_state *xas, gfp_t gfp)
{
	(void)xas, (void)gfp;
	return false;
}

/* Nobody asks for this one, so it must not be cut: its type exists nowhere. */
static inline int xas_unused(struct no_such_thing *thing)
{
	return thing->value;
}
#endif
