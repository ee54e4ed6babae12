#include "bootargs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MAGIC       0xd00dfeedu
#define BEGIN_NODE  1u
#define END_NODE    2u
#define PROP        3u
#define NOP         4u

/* No device tree of ours is larger; a header that claims more is garbage. */
#define LARGEST     0x200000u

/* A part of the tree that has been found to lie within it. */
struct block {
    const unsigned char *bytes;
    uint32_t size;
};

static uint32_t big_endian(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Takes the next 32-bit word; false at the end. */
static bool take_word(struct block *rest, uint32_t *word)
{
    if (rest->size < 4)
        return false;
    *word = big_endian(rest->bytes);
    rest->bytes += 4;
    rest->size -= 4;
    return true;
}

/* Takes `size` bytes and the padding behind them; false at the end. */
static bool take_bytes(struct block *rest, uint32_t size, struct block *taken)
{
    uint32_t padded = (size + 3) & ~3u;

    if (padded < size || rest->size < padded)
        return false;
    *taken = (struct block){ rest->bytes, size };
    rest->bytes += padded;
    rest->size -= padded;
    return true;
}

/* The text at `offset`; NULL when it does not end within the block. */
static const char *text_at(struct block block, uint32_t offset)
{
    for (uint32_t i = offset; i < block.size; i++)
        if (block.bytes[i] == '\0')
            return (const char *)block.bytes + offset;
    return NULL;
}

static bool same(const char *a, const char *b)
{
    return a != NULL && strlen(a) == strlen(b) && memcmp(a, b, strlen(a)) == 0;
}

/* The block whose size and offset stand at these places in the header. */
static struct block part(struct block tree, uint32_t size_at, uint32_t offset_at)
{
    uint32_t size = big_endian(tree.bytes + size_at);
    uint32_t offset = big_endian(tree.bytes + offset_at);

    if (offset > tree.size || size > tree.size - offset)
        return (struct block){ tree.bytes, 0 };
    return (struct block){ tree.bytes + offset, size };
}

/* A property of a node right below the root. */
struct property {
    const char *node, *name;
    struct block value;
};

/* Walks over a tree; steps are kept between calls of `next`. */
struct walk {
    struct block structure, strings;
    unsigned depth;
    const char *node; /* below the root; NULL elsewhere */
};

/* Begins at a tree; false if there is none. */
static bool walk_begin(struct walk *walk, const void *tree)
{
    struct block whole = { tree, 40 }; /* the header */

    if (tree == NULL || big_endian(whole.bytes) != MAGIC)
        return false;
    whole.size = big_endian(whole.bytes + 4);
    if (whole.size < 40 || whole.size > LARGEST)
        return false;
    *walk = (struct walk){ part(whole, 36, 8), part(whole, 32, 12), 0, NULL };
    return true;
}

/* Goes on to the next property of a node right below the root; false at the end. */
static bool walk_next(struct walk *walk, struct property *property)
{
    struct block *rest = &walk->structure, unused;
    uint32_t token, size, name;

    while (take_word(rest, &token)) {
        switch (token) {
        case BEGIN_NODE: {
            const char *node = text_at(*rest, 0);
            if (node == NULL || !take_bytes(rest, strlen(node) + 1, &unused))
                return false;
            walk->depth++;
            walk->node = walk->depth == 2 ? node : NULL;
            break;
        }
        case END_NODE:
            if (walk->depth == 0)
                return false;
            walk->depth--;
            walk->node = NULL;
            break;
        case PROP:
            if (!take_word(rest, &size) || !take_word(rest, &name)
                || !take_bytes(rest, size, &property->value))
                return false;
            property->node = walk->node;
            property->name = text_at(walk->strings, name);
            if (walk->node != NULL && property->name != NULL)
                return true;
            break;
        case NOP:
            break;
        default:
            return false;
        }
    }
    return false;
}

const char *bootargs_find(const void *tree)
{
    struct walk walk;
    struct property property;

    if (!walk_begin(&walk, tree))
        return "";
    while (walk_next(&walk, &property))
        if (same(property.node, "chosen") && same(property.name, "bootargs"))
            return text_at(property.value, 0) != NULL ? (const char *)property.value.bytes : "";
    return "";
}

static bool begins_with(const char *text, const char *beginning)
{
    size_t length = strlen(beginning);

    return strlen(text) >= length && memcmp(text, beginning, length) == 0;
}

static uint64_t big_endian64(const unsigned char *p)
{
    return (uint64_t)big_endian(p) << 32 | big_endian(p + 4);
}

struct shared_memory shared_memory_find(const void *tree, const char *label)
{
    static const char beginning[] = "shared-memory@";
    struct shared_memory found = { 0, 0, false };
    const char *node = NULL;
    bool is_it = false;
    struct walk walk;
    struct property property;

    if (!walk_begin(&walk, tree))
        return found;
    while (walk_next(&walk, &property)) {
        if (property.node != node && is_it)
            return found;
        if (property.node != node)
            found = (struct shared_memory){ 0, 0, false };
        node = property.node;
        if (!begins_with(node, beginning))
            continue;
        if (same(property.name, "label"))
            is_it = same(text_at(property.value, 0), label);
        if (same(property.name, "read-only"))
            found.read_only = true;
        if (same(property.name, "reg") && property.value.size == 16)
            found = (struct shared_memory){ big_endian64(property.value.bytes),
                                            big_endian64(property.value.bytes + 8),
                                            found.read_only };
    }
    return is_it ? found : (struct shared_memory){ 0, 0, false };
}

struct link_end link_end_find(const void *tree, const char *label)
{
    static const char beginning[] = "link@";
    const struct link_end none = { 0 };
    struct link_end found = none;
    const char *node = NULL;
    bool is_it = false;
    struct walk walk;
    struct property property;

    if (!walk_begin(&walk, tree))
        return none;
    while (walk_next(&walk, &property)) {
        if (property.node != node && is_it)
            break;
        if (property.node != node)
            found = none;
        node = property.node;
        if (!begins_with(node, beginning))
            continue;
        const unsigned char *value = property.value.bytes;

        if (same(property.name, "label"))
            is_it = same(text_at(property.value, 0), label);
        /* Of the controller: an SPI, its number, how it is signalled. */
        if (same(property.name, "interrupts") && property.value.size == 12)
            found.intid = 32 + big_endian(value + 4);
        /* Registers, the own half, the peer's. */
        if (same(property.name, "reg") && property.value.size == 48) {
            found.registers = big_endian64(value);
            found.own = big_endian64(value + 16);
            found.half_size = big_endian64(value + 24);
            found.peer = big_endian64(value + 32);
        }
    }
    return is_it && found.intid != 0 ? found : none;
}
