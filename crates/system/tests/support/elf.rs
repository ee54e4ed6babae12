//! Makes small ELF files, byte by byte, so that the reader under test is not
//! tested with its own ideas.

pub const ET_EXEC: u16 = 2;
pub const ET_DYN: u16 = 3;
pub const R: u32 = 4;
pub const W: u32 = 2;
pub const X: u32 = 1;
pub const PT_LOAD: u32 = 1;
pub const PT_DYNAMIC: u32 = 2;

struct Program {
    kind: u32,
    flags: u32,
    vaddr: u64,
    paddr: u64,
    data: Vec<u8>,
    memory: u64,
}

/// An ELF file being made.
pub struct Elf {
    pub class: u8,
    pub data: u8,
    pub kind: u16,
    pub machine: u16,
    pub entry: u64,
    programs: Vec<Program>,
    /// A symbol that it has: name and value.
    symbol: Option<(&'static str, u64)>,
}

impl Elf {
    pub fn new(kind: u16, entry: u64) -> Self {
        Self { class: 2, data: 1, kind, machine: 183, entry, programs: Vec::new(), symbol: None }
    }

    pub fn segment(self, address: u64, data: &[u8], memory: u64, flags: u32) -> Self {
        self.program(PT_LOAD, address, address, data, memory, flags)
    }

    pub fn program(
        mut self,
        kind: u32,
        vaddr: u64,
        paddr: u64,
        data: &[u8],
        memory: u64,
        flags: u32,
    ) -> Self {
        self.programs.push(Program { kind, flags, vaddr, paddr, data: data.to_vec(), memory });
        self
    }

    pub fn symbol(self, name: &'static str, value: u64) -> Self {
        Self { symbol: Some((name, value)), ..self }
    }

    pub fn build(&self) -> Vec<u8> {
        let mut file = vec![0x7f, b'E', b'L', b'F', self.class, self.data, 1, 0];
        file.resize(16, 0);
        file.extend(self.kind.to_le_bytes());
        file.extend(self.machine.to_le_bytes());
        file.extend(1_u32.to_le_bytes());
        file.extend(self.entry.to_le_bytes());
        file.extend(64_u64.to_le_bytes());
        file.extend(0_u64.to_le_bytes());
        file.extend(0_u32.to_le_bytes());
        for half in [64, 56, self.programs.len() as u16, 64, 0, 0] {
            file.extend(half.to_le_bytes());
        }
        let mut offset = 64 + 56 * self.programs.len() as u64;
        for program in &self.programs {
            file.extend(program.kind.to_le_bytes());
            file.extend(program.flags.to_le_bytes());
            let size = program.data.len() as u64;
            for word in [offset, program.vaddr, program.paddr, size, program.memory, 8] {
                file.extend(word.to_le_bytes());
            }
            offset += size;
        }
        for program in &self.programs {
            file.extend(&program.data);
        }
        if let Some((name, value)) = self.symbol {
            add_symbol(&mut file, name, value);
        }
        file
    }
}

/// Adds a table of symbols, one besides the empty first, and the sections that this needs.
fn add_symbol(file: &mut Vec<u8>, name: &str, value: u64) {
    file.resize(file.len().next_multiple_of(8), 0);
    let symbols = file.len() as u64;
    file.extend([0; 24]);
    // Its name is the first, it is a global object of section 1; its value and size.
    file.extend([1, 0, 0, 0, 0x11, 0, 1, 0]);
    file.extend(value.to_le_bytes());
    file.extend(32_u64.to_le_bytes());
    let names = file.len() as u64;
    let text = format!("\0{name}\0");
    file.extend(text.as_bytes());
    file.resize(file.len().next_multiple_of(8), 0);
    let sections = file.len() as u64;
    file.extend([0; 64]);
    // Kind, place, size, the section of the names, the first global symbol, size of each.
    for (kind, at, size, link, info, each) in
        [(2_u32, symbols, 48_u64, 2_u32, 1_u32, 24_u64), (3, names, text.len() as u64, 0, 0, 0)]
    {
        file.extend([0; 4]);
        file.extend(kind.to_le_bytes());
        file.extend([0; 16]);
        file.extend(at.to_le_bytes());
        file.extend(size.to_le_bytes());
        file.extend(link.to_le_bytes());
        file.extend(info.to_le_bytes());
        file.extend(8_u64.to_le_bytes());
        file.extend(each.to_le_bytes());
    }
    file[40..48].copy_from_slice(&sections.to_le_bytes());
    // Three sections; the names of symbols serve as those of sections.
    file[60..64].copy_from_slice(&[3, 0, 2, 0]);
}

/// One relocation: offset, type, addend.
pub type Rela = (u64, u32, i64);

/// Where the words that the test's hypervisor wants relocated lie.
pub const DATA: u64 = 0x3000;
pub const RELATIVE: u32 = 1027;
/// Where its stacks begin, each with nothing in the page before it.
pub const STACKS: [u64; 2] = [0x9000, 0xd000];

/// Where its relocations lie, for the host alone.
pub const RELOCATIONS: u64 = 0x1_1000;

/// A hypervisor: code at 0, constants at 0x2000, data at 0x3000 with .bss behind, stacks, and
/// the relocations.
pub fn hypervisor(relas: &[Rela]) -> Elf {
    let mut table = Vec::new();
    for &(offset, kind, addend) in relas {
        table.extend(offset.to_le_bytes());
        table.extend(u64::from(kind).to_le_bytes());
        table.extend(addend.to_le_bytes());
    }
    let dynamic: [(u64, u64); 4] = [(7, RELOCATIONS), (8, table.len() as u64), (9, 24), (0, 0)];
    let dynamic: Vec<u8> = dynamic
        .iter()
        .flat_map(|(tag, value)| [tag.to_le_bytes(), value.to_le_bytes()])
        .flatten()
        .collect();
    let dynamic_at = RELOCATIONS + table.len() as u64;
    let host = [&table[..], &dynamic].concat();
    Elf::new(ET_DYN, 0x40)
        .segment(0, &[0x1f; 0x1234], 0x1234, R | X)
        .segment(0x2000, &[0xcc; 16], 16, R)
        .segment(DATA, &[0xdd; 64], 0x4321, R | W)
        .segment(STACKS[0], &[], 0x3000, R | W)
        .segment(STACKS[1], &[], 0x3000, R | W)
        .segment(RELOCATIONS, &host, host.len() as u64, R)
        .program(PT_DYNAMIC, dynamic_at, dynamic_at, &dynamic, dynamic.len() as u64, R)
}

/// A sound hypervisor.
pub fn plain_hypervisor() -> Vec<u8> {
    hypervisor(&[(DATA, RELATIVE, 0x40), (DATA + 8, RELATIVE, 0x2000)]).build()
}
