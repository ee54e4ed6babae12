# A circuit for the placer: a ring of cells, each of which a cell further on drives as well.
BEGIN {
    for (i = 0; i < cells; i++) {
        printf "cell %d c%d\nleft -240 right 240 bottom -1000 top 1000\n", i + 1, i
        printf "pin name A signal s%d layer 1 -160 -140\n", (i + cells - 1) % cells
        printf "pin name B signal s%d layer 1 0 300\n", (i * 7 + 3) % cells
        printf "pin name Y signal s%d layer 1 160 0\n", i
    }
}
