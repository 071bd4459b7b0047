//! Things with names that are never reused, so that a late timer finds nothing instead of another's.

/// The name of a thing in an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArenaSlot {
    index: u32,
    generation: u32,
}

impl ArenaSlot {
    /// A name for what lives in no arena.
    #[inline]
    pub fn plain(index: usize) -> ArenaSlot {
        ArenaSlot { index: index as u32, generation: 0 }
    }

    /// The number of its place, which later things get again.
    #[inline]
    pub fn index(self) -> usize {
        self.index as usize
    }

    /// The key as one number of 60 bits.
    #[inline]
    pub fn to_bits(self) -> u64 {
        u64::from(self.generation & 0x0fff_ffff) << 32 | u64::from(self.index)
    }

    /// The key that [`ArenaSlot::to_bits`] gave; what lies above is left out.
    #[inline]
    pub fn of_bits(bits: u64) -> ArenaSlot {
        ArenaSlot { index: bits as u32, generation: (bits >> 32) as u32 & 0x0fff_ffff }
    }
}

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    value: Option<T>,
}

/// Things by key.
#[derive(Debug)]
pub struct Arena<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

impl<T> Default for Arena<T> {
    fn default() -> Arena<T> {
        Arena { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Arena<T> {
    /// Keeps a thing and names it.
    #[inline]
    pub fn insert(&mut self, value: T) -> ArenaSlot {
        match self.free.pop() {
            Some(index) => {
                let place = &mut self.places[index as usize];
                place.value = Some(value);
                ArenaSlot { index, generation: place.generation }
            }
            None => {
                self.places.push(Place { generation: 0, value: Some(value) });
                ArenaSlot { index: self.places.len() as u32 - 1, generation: 0 }
            }
        }
    }

    /// How many things there are.
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The thing of this name, where it is still there.
    #[inline]
    pub fn get(&self, key: ArenaSlot) -> Option<&T> {
        self.places.get(key.index()).filter(|place| place.generation == key.generation)?.value.as_ref()
    }

    /// The same, to be changed.
    #[inline]
    pub fn get_mut(&mut self, key: ArenaSlot) -> Option<&mut T> {
        self.places.get_mut(key.index()).filter(|place| place.generation == key.generation)?.value.as_mut()
    }

    /// Takes a thing out; its name is never used again.
    pub fn remove(&mut self, key: ArenaSlot) -> Option<T> {
        let place = self.places.get_mut(key.index()).filter(|place| place.generation == key.generation)?;
        let value = place.value.take()?;
        place.generation = (place.generation + 1) & 0x0fff_ffff;
        self.free.push(key.index);
        Some(value)
    }

    /// Removes a thing without moving it out, which for large ones is a copy less.
    #[inline]
    pub fn discard(&mut self, key: ArenaSlot) {
        let place = self.places.get_mut(key.index()).filter(|place| place.generation == key.generation);
        let Some(place) = place.filter(|place| place.value.is_some()) else { return };
        place.value = None;
        place.generation = (place.generation + 1) & 0x0fff_ffff;
        self.free.push(key.index);
    }

    /// The keys of all that are there, in the order of their places.
    pub fn keys(&self) -> impl Iterator<Item = ArenaSlot> + '_ {
        self.places
            .iter()
            .enumerate()
            .filter(|(_, place)| place.value.is_some())
            .map(|(index, place)| ArenaSlot { index: index as u32, generation: place.generation })
    }
}
