/* Included ahead of every file: the stand-ins around what was cut from the tree's headers. */
#ifndef KSHIM_H
#define KSHIM_H
#include "kernel.h"
#include "../cut/types.h"
#include "objects.h"
#include "../cut/functions.h"
#endif
