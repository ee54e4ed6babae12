/* The kernel includes this header, but uses nothing of it. */
