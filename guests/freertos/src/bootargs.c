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

static const char *search(struct block structure, struct block strings)
{
    unsigned depth = 0;
    bool in_chosen = false;
    uint32_t token, size, name;
    struct block value;

    while (take_word(&structure, &token)) {
        switch (token) {
        case BEGIN_NODE: {
            const char *node = text_at(structure, 0);
            if (node == NULL || !take_bytes(&structure, strlen(node) + 1, &value))
                return "";
            depth++;
            in_chosen = depth == 2 && same(node, "chosen");
            break;
        }
        case END_NODE:
            if (depth == 0)
                return "";
            depth--;
            in_chosen = false;
            break;
        case PROP:
            if (!take_word(&structure, &size) || !take_word(&structure, &name)
                || !take_bytes(&structure, size, &value))
                return "";
            if (in_chosen && same(text_at(strings, name), "bootargs"))
                return text_at(value, 0) != NULL ? (const char *)value.bytes : "";
            break;
        case NOP:
            break;
        default:
            return "";
        }
    }
    return "";
}

const char *bootargs_find(const void *tree)
{
    struct block whole = { tree, 40 }; /* the header */

    if (tree == NULL || big_endian(whole.bytes) != MAGIC)
        return "";
    whole.size = big_endian(whole.bytes + 4);
    if (whole.size < 40 || whole.size > LARGEST)
        return "";
    return search(part(whole, 36, 8), part(whole, 32, 12));
}
