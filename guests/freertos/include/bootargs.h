/* The command line that the device tree holds. */
#ifndef BOOTARGS_H
#define BOOTARGS_H

/* The bootargs of /chosen in a flattened device tree (Devicetree Specification
 * 0.4, chapter 5); "" when there is no tree or it has none. Never reads outside
 * the tree, however broken it is. The text lies in the tree. */
const char *bootargs_find(const void *tree);

#endif
