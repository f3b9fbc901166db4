#include <linux/export.h>
#include <linux/xarray.h>

static struct xa_node **node_of(struct xarray *xa, unsigned long index)
{
	BUG_ON(index / NODE_SLOTS >= ROOT_SLOTS);
	return &xa->nodes[index / NODE_SLOTS];
}

void *xa_load(struct xarray *xa, unsigned long index)
{
	struct xa_node *node = index / NODE_SLOTS < ROOT_SLOTS ? *node_of(xa, index) : NULL;

	return node ? node->slots[index % NODE_SLOTS] : NULL;
}
EXPORT_SYMBOL(xa_load);

void *xas_store(struct xa_state *xas, void *entry)
{
	unsigned long i;

	for (i = xas->xa_index; i < xas->xa_index + (1UL << xas->order); i++) {
		struct xa_node **node = node_of(xas->xa, i);

		if (!*node)
			*node = kmem_cache_alloc(radix_tree_node_cachep, GFP_NOWAIT);
		(*node)->slots[i % NODE_SLOTS] = entry;
	}
	return NULL;
}

void *xas_find_conflict(struct xa_state *xas)
{
	unsigned long i;

	for (i = xas->xa_index; i < xas->xa_index + (1UL << xas->order); i++)
		if (xa_load(xas->xa, i))
			return xa_load(xas->xa, i);
	return NULL;
}

void *xas_find(struct xa_state *xas, unsigned long max)
{
	unsigned long i = xas->xa_index + xas->started;

	for (; i <= max && i < NODE_SLOTS * ROOT_SLOTS; i++) {
		void *entry = xa_load(xas->xa, i);

		if (!entry)
			continue;
		xas->xa_index = i;
		xas->started = true;
		return entry;
	}
	return NULL;
}
