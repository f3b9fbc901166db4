/* Stacks for tasks, and going from one to another. */
#ifndef KSHIM_SWITCH_H
#define KSHIM_SWITCH_H

void *kshim_stack_take(void);
void kshim_stack_give(void *top);
void *kshim_stack_begin(void *top, void (*entry)(void));
/* Leaves this stack, with *save to come back by, for the one that go_to was left by. */
void kshim_switch(void **save, void *go_to);

#endif
