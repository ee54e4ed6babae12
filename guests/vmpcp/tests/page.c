/* The page that guests share. */
#include "vmpcp_page.h"

#include "expect.h"
#include "internal.h"

struct vmpcp_answer vmpcp_call(uint32_t function, uint64_t x1, uint64_t x2)
{
    (void)function, (void)x1, (void)x2;
    return (struct vmpcp_answer){ { 0 } };
}

uint64_t vmpcp_counter(void)
{
    return 0;
}

int main(void)
{
    struct vmpcp_page page = { 0 };

    for (unsigned round = 0; round < 10; round++) {
        EXPECT(vmpcp_page_begin(&page, false));
        EXPECT(vmpcp_page_finish(&page, round % 4));
    }
    EXPECT(page.magic == VMPCP_PAGE_MAGIC && page.a == 10 && page.b == 10);
    EXPECT(page.rounds_by[0] == 3 && page.rounds_by[3] == 2 && page.violations == 0);

    /* A participant dies within its round, and the next one is told. */
    EXPECT(vmpcp_page_begin(&page, false));
    EXPECT(vmpcp_page_begin(&page, true));
    EXPECT(vmpcp_page_finish(&page, 0));
    EXPECT(page.owner_died == 1 && page.violations == 0 && page.a == page.b);

    /* Two are inside at once: the second finds it when it begins, the first when it ends. */
    EXPECT(vmpcp_page_begin(&page, false));
    EXPECT(!vmpcp_page_begin(&page, false));
    EXPECT(vmpcp_page_finish(&page, 1));
    EXPECT(!vmpcp_page_finish(&page, 0));
    EXPECT(page.violations == 2);
    EXPECT(vmpcp_page_begin(&page, false) && vmpcp_page_finish(&page, 1));
    puts("vmpcp page: ok");
    return 0;
}
