//! Sets and maps of vCPUs and of cores.
//!
//! A [`Set`] is one machine word with a bit for each member, such as the vCPUs that
//! are visitors, or have a job. A test or a union takes an instruction or two. Code
//! uses the word itself only in memory that several cores write, and in tables.

use crate::{MAX_VCPUS, Members, VcpuId};
use core::fmt;
use core::marker::PhantomData;
use core::ops::{BitAnd, BitOr, BitOrAssign, Index, IndexMut, Sub, SubAssign};
use notes::each;

/// Members that a set can have.
const WORD: usize = u64::BITS as usize;

/// Something that a number below 64 identifies.
pub trait Member: Copy {
    /// Returns its number.
    fn number(self) -> usize;
    /// Returns the member with this number.
    fn numbered(number: usize) -> Self;
    /// Says in the image that a loop begins that goes round for each member of a set.
    fn loop_begins();
    /// Says in the image that it goes round.
    fn loop_passes();
}

impl Member for VcpuId {
    #[inline]
    fn number(self) -> usize {
        usize::from(self.0)
    }

    #[inline]
    fn numbered(number: usize) -> Self {
        debug_assert!(number < MAX_VCPUS);
        Self(number as u8)
    }

    #[inline(always)]
    fn loop_begins() {
        notes::begins::<MAX_VCPUS, { each::VCPU }>();
    }

    #[inline(always)]
    fn loop_passes() {
        notes::passes::<MAX_VCPUS, { each::VCPU }>();
    }
}

/// A core, by its index.
impl Member for usize {
    #[inline]
    fn number(self) -> usize {
        self
    }

    #[inline]
    fn numbered(number: usize) -> Self {
        number
    }

    #[inline(always)]
    fn loop_begins() {
        notes::begins::<WORD, { each::CORE }>();
    }

    #[inline(always)]
    fn loop_passes() {
        notes::passes::<WORD, { each::CORE }>();
    }
}

/// vCPUs.
pub type VcpuSet = Set<VcpuId>;

/// Cores.
pub type CoreSet = Set<usize>;

/// A set of things that numbers below 64 identify.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Set<M> {
    bits: u64,
    members: PhantomData<M>,
}

impl<M> Set<M> {
    /// The empty set.
    pub const EMPTY: Self = Self::from_bits(0);

    /// Returns the set that a word of bits stands for.
    #[must_use]
    #[inline]
    pub const fn from_bits(bits: u64) -> Self {
        Self { bits, members: PhantomData }
    }

    /// Returns the word that stands for this set.
    #[must_use]
    #[inline]
    pub const fn bits(self) -> u64
    where
        M: Copy,
    {
        self.bits
    }
}

impl<M: Member> Set<M> {
    /// Returns the set whose only member this is.
    #[must_use]
    #[inline]
    pub fn of(member: M) -> Self {
        debug_assert!(member.number() < 64);
        Self::from_bits(1 << (member.number() & 63))
    }

    /// Returns the set of the first so many members, at most 63.
    #[must_use]
    #[inline]
    pub const fn of_first(count: usize) -> Self {
        debug_assert!(count < WORD);
        Self::from_bits((1 << (count & 63)) - 1)
    }

    /// Returns true if there is no member.
    #[must_use]
    #[inline]
    pub fn is_empty(self) -> bool {
        self.bits == 0
    }

    /// Returns the number of members.
    #[must_use]
    #[inline]
    pub fn len(self) -> usize {
        self.bits.count_ones() as usize
    }

    /// Returns true if `member` is in the set.
    #[must_use]
    #[inline]
    pub fn has(self, member: M) -> bool {
        self.bits >> (member.number() & 63) & 1 == 1
    }

    /// Returns true if the two sets have a member in common.
    #[must_use]
    #[inline]
    pub fn meets(self, other: Self) -> bool {
        self.bits & other.bits != 0
    }

    /// Returns true if every member of this set is in `other`, too.
    #[must_use]
    #[inline]
    pub fn is_within(self, other: Self) -> bool {
        self.bits & !other.bits == 0
    }

    /// Returns the member with the lowest number.
    #[must_use]
    #[inline]
    pub fn first(self) -> Option<M> {
        (self.bits != 0).then(|| M::numbered(self.bits.trailing_zeros() as usize))
    }

    /// Adds a member.
    #[inline]
    pub fn insert(&mut self, member: M) {
        *self |= Self::of(member);
    }

    /// Removes a member, if it is there.
    #[inline]
    pub fn remove(&mut self, member: M) {
        *self -= Self::of(member);
    }

    /// Returns the members in ascending order.
    #[inline]
    pub fn iter(self) -> Iter<M>
    where
        M: Member,
    {
        M::loop_begins();
        Iter { rest: Members::of(self.bits), members: PhantomData }
    }
}

impl<M> Default for Set<M> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<M: Member + fmt::Debug> fmt::Debug for Set<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl<M: Member> FromIterator<M> for Set<M> {
    fn from_iter<I: IntoIterator<Item = M>>(members: I) -> Self {
        members.into_iter().fold(Self::EMPTY, |set, member| set | Self::of(member))
    }
}

impl<M: Member> IntoIterator for Set<M> {
    type Item = M;
    type IntoIter = Iter<M>;

    #[inline]
    fn into_iter(self) -> Iter<M> {
        self.iter()
    }
}

impl<M> BitOr for Set<M> {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self::from_bits(self.bits | other.bits)
    }
}

impl<M> BitOrAssign for Set<M> {
    #[inline]
    fn bitor_assign(&mut self, other: Self) {
        self.bits |= other.bits;
    }
}

impl<M> BitAnd for Set<M> {
    type Output = Self;

    #[inline]
    fn bitand(self, other: Self) -> Self {
        Self::from_bits(self.bits & other.bits)
    }
}

impl<M> Sub for Set<M> {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        Self::from_bits(self.bits & !other.bits)
    }
}

impl<M> SubAssign for Set<M> {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        self.bits &= !other.bits;
    }
}

/// The members of a [`Set`] in ascending order.
#[derive(Clone, Debug)]
pub struct Iter<M> {
    rest: Members,
    members: PhantomData<M>,
}

impl<M: Member> Iterator for Iter<M> {
    type Item = M;

    #[inline]
    fn next(&mut self) -> Option<M> {
        let member = self.rest.next()?;
        M::loop_passes();
        Some(M::numbered(member))
    }
}

/// A value for each vCPU that can exist.
#[derive(Clone, Copy, Debug)]
pub struct VcpuMap<T>([T; MAX_VCPUS]);

impl<T> VcpuMap<T> {
    /// Returns the map with these values, in the order of identifiers.
    #[must_use]
    pub const fn new(values: [T; MAX_VCPUS]) -> Self {
        Self(values)
    }

    /// Returns a vCPU's value; none when no such vCPU can exist.
    #[inline]
    pub fn get(&self, id: VcpuId) -> Option<&T> {
        self.0.get(id.number())
    }

    /// Returns a vCPU's value to change; none when no such vCPU can exist.
    #[inline]
    pub fn get_mut(&mut self, id: VcpuId) -> Option<&mut T> {
        self.0.get_mut(id.number())
    }
}

impl<T> Index<VcpuId> for VcpuMap<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, id: VcpuId) -> &T {
        &self.0[place(id)]
    }
}

impl<T> IndexMut<VcpuId> for VcpuMap<T> {
    #[inline(always)]
    fn index_mut(&mut self, id: VcpuId) -> &mut T {
        &mut self.0[place(id)]
    }
}

/// Returns where a vCPU's value is. Identifiers are below [`MAX_VCPUS`] since the host numbered
/// them; the remainder is in range without a branch.
#[inline(always)]
fn place(id: VcpuId) -> usize {
    debug_assert!(id.number() < MAX_VCPUS);
    id.number() % MAX_VCPUS
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::collections::BTreeSet;
    use std::format;
    use std::vec::Vec;

    /// A set answers as the standard library's does, whatever was put in and taken out.
    #[test]
    fn a_set_behaves_as_a_set() {
        let (mut set, mut model) = (VcpuSet::EMPTY, BTreeSet::new());
        let mut seed = 1_u32;
        for _ in 0..10_000 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let id = VcpuId((seed >> 24) as u8 % MAX_VCPUS as u8);
            if seed >> 16 & 1 == 0 {
                set.insert(id);
                model.insert(id);
            } else {
                set.remove(id);
                model.remove(&id);
            }
            assert_eq!(set.has(id), model.contains(&id));
            assert_eq!(set.len(), model.len());
            assert_eq!(set.first(), model.first().copied());
            assert_eq!(set.is_empty(), model.is_empty());
        }
        assert_eq!(set.iter().collect::<Vec<_>>(), model.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn sets_are_combined() {
        let set = |cores: &[usize]| cores.iter().copied().collect::<CoreSet>();
        let (low, odd) = (set(&[0, 1, 2]), set(&[1, 3]));
        assert_eq!(low | odd, set(&[0, 1, 2, 3]));
        assert_eq!(low & odd, set(&[1]));
        assert_eq!(low - odd, set(&[0, 2]));
        assert!(low.meets(odd) && !(low - odd).meets(odd));
        assert!(set(&[1]).is_within(low) && !odd.is_within(low));
        assert_eq!(set(&[]).first(), None);
        assert_eq!(CoreSet::from_bits(0b101).bits(), set(&[0, 2]).bits());
        assert_eq!(format!("{odd:?}"), "{1, 3}");
    }

    #[test]
    fn the_last_vcpu_fits() {
        let last = VcpuId(MAX_VCPUS as u8 - 1);
        let mut map = VcpuMap::new([0; MAX_VCPUS]);
        map[last] = 7;
        assert_eq!((map[last], map.get(last), map[VcpuId(0)]), (7, Some(&7), 0));
        assert_eq!(map.get(VcpuId(MAX_VCPUS as u8)), None);
        assert_eq!(VcpuSet::of(last).first(), Some(last));
    }
}
