/* The kernel options the tree's code is built with. An option that is not here is off. */
#ifndef KSHIM_CONFIG_H
#define KSHIM_CONFIG_H

#define CONFIG_64BIT 1
#define CONFIG_MMU 1
#define CONFIG_SMP 1
#define CONFIG_BLOCK 1
#define CONFIG_XARRAY_MULTI 1
#define CONFIG_BASE_SMALL 0
#define CONFIG_ADVISE_SYSCALLS 1
#ifndef KSHIM_WITHOUT_THP
#define CONFIG_TRANSPARENT_HUGEPAGE 1
#endif

#define BITS_PER_LONG 64

/* 1 when the option is defined to 1, else 0, usable in #if and in code. */
#define KSHIM_ONE_1 ,
#define KSHIM_THIRD(first, second, third, ...) third
#define KSHIM_IS_SET_(comma_or_junk) KSHIM_THIRD(comma_or_junk 0, 1, 0, 0)
#define KSHIM_PASTE(value) KSHIM_IS_SET_(KSHIM_ONE_##value)
#define KSHIM_IS_SET(option) KSHIM_PASTE(option)
#define IS_ENABLED(option) KSHIM_IS_SET(option)
#define IS_BUILTIN(option) KSHIM_IS_SET(option)

#endif
