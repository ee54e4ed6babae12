// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Links to other VMs, and virtio devices for them, for programs: pages and doorbell by Linux's UIO, as uio_pdrv_genirq
 * would give them, which Debian's kernel is built without. See docs/src/links.md and docs/src/virtio.md.
 *
 * A program maps registers, own half and the peer's (maps 0, 1, 2 of /dev/uioN). It waits by poll or read, and enables the
 * interrupt, which is disabled whenever it comes, by writing 1.
 *
 * A VM that gets virtio devices has registers and memory (maps 0 and 1). The memory is mapped as that VM has it: cached.
 * The interrupt is never disabled: it comes once for each time that the program arms it. */
#include <linux/interrupt.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/of.h>
#include <linux/of_device.h>
#include <linux/platform_device.h>
#include <linux/spinlock.h>
#include <linux/uio_driver.h>

/* How many maps a device has. */
#define LINK_MAPS 3
#define VIRTIO_MAPS 2

struct end {
	struct uio_info uio;
	/* Protects `enabled`, which says whether the interrupt is. */
	spinlock_t lock;
	bool enabled;
};

static void set_enabled(struct end *end, bool enabled)
{
	if (end->enabled == enabled)
		return;
	end->enabled = enabled;
	if (enabled)
		enable_irq(end->uio.irq);
	else
		disable_irq_nosync(end->uio.irq);
}

static irqreturn_t rang(int irq, struct uio_info *info)
{
	struct end *end = info->priv;

	spin_lock(&end->lock);
	set_enabled(end, false);
	spin_unlock(&end->lock);
	return IRQ_HANDLED;
}

static int control(struct uio_info *info, s32 on)
{
	struct end *end = info->priv;
	unsigned long flags;

	spin_lock_irqsave(&end->lock, flags);
	set_enabled(end, on != 0);
	spin_unlock_irqrestore(&end->lock, flags);
	return 0;
}

static irqreturn_t rang_once(int irq, struct uio_info *info)
{
	return IRQ_HANDLED;
}

/* UIO has looked whether there is such a map, and whether it is as large. */
static int map(struct uio_info *info, struct vm_area_struct *area)
{
	const struct uio_mem *memory = &info->mem[area->vm_pgoff];

	if (area->vm_pgoff == 0)
		area->vm_page_prot = pgprot_noncached(area->vm_page_prot);
	area->vm_pgoff = 0;
	return vm_iomap_memory(area, memory->addr, memory->size);
}

static int probe(struct platform_device *device)
{
	int maps = (uintptr_t)of_device_get_match_data(&device->dev);
	struct end *end = devm_kzalloc(&device->dev, sizeof(*end), GFP_KERNEL);
	const char *name;
	int i, irq;

	if (!end)
		return -ENOMEM;
	if (of_property_read_string(device->dev.of_node, "linux,uio-name", &name))
		return -EINVAL;
	irq = platform_get_irq(device, 0);
	if (irq < 0)
		return irq;
	for (i = 0; i < maps; i++) {
		struct resource *memory = platform_get_resource(device, IORESOURCE_MEM, i);

		if (!memory)
			return -EINVAL;
		end->uio.mem[i] = (struct uio_mem){
			.name = memory->name,
			.memtype = UIO_MEM_PHYS,
			.addr = memory->start,
			.size = resource_size(memory),
		};
	}
	spin_lock_init(&end->lock);
	end->enabled = true;
	end->uio.name = name;
	end->uio.version = "1";
	end->uio.irq = irq;
	if (maps == LINK_MAPS) {
		end->uio.handler = rang;
		end->uio.irqcontrol = control;
	} else {
		end->uio.handler = rang_once;
		end->uio.mmap = map;
	}
	end->uio.priv = end;
	return devm_uio_register_device(&device->dev, &end->uio);
}

static const struct of_device_id links[] = {
	{ .compatible = "cassata,link", .data = (void *)LINK_MAPS },
	{ .compatible = "cassata,virtio-back", .data = (void *)VIRTIO_MAPS },
	{}
};
MODULE_DEVICE_TABLE(of, links);

static struct platform_driver link_driver = {
	.probe = probe,
	.driver = { .name = "cassata_link", .of_match_table = links },
};
module_platform_driver(link_driver);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Links to other VMs, and virtio devices for them, for programs");
