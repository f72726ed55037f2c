//! Merkle tree hashing of RFC 6962, with the verification of RFC 9162.
//!
//! A leaf and a node are hashed with different prefixes, so neither passes as the
//! other. Every function is pure; the ones that verify must never accept a proof
//! that has a hash too many or too few.

use lazaret_contract::digest::Sha256Digest;
use sha2::{Digest as _, Sha256};

/// A hash of the tree.
pub type Hash = Sha256Digest;

/// Why a proof is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// The index or the sizes make no sense.
    #[error("index or size is out of range")]
    Range,
    /// More or fewer hashes than such a proof has.
    #[error("proof has the wrong number of hashes")]
    Length,
    /// It leads to another root.
    #[error("proof leads to another root")]
    Root,
}

/// The hash of a leaf.
pub fn leaf_hash(data: &[u8]) -> Hash {
    hash(0, data, b"")
}

/// The hash of a node over its two children.
pub fn node_hash(left: &Hash, right: &Hash) -> Hash {
    hash(1, left.as_bytes(), right.as_bytes())
}

fn hash(prefix: u8, first: &[u8], second: &[u8]) -> Hash {
    let mut hasher = Sha256::new();
    hasher.update([prefix]);
    hasher.update(first);
    hasher.update(second);
    Hash::from_bytes(hasher.finalize().into())
}

/// The root of a tree of these leaves. A tree without leaves has the digest of
/// nothing as its root.
pub fn root(leaves: &[Hash]) -> Hash {
    let mut frontier = Frontier::default();
    leaves.iter().for_each(|leaf| frontier.push(*leaf));
    frontier.root()
}

/// The right edge of a tree: enough to append and to give the root, in
/// logarithmic space.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frontier {
    size: u64,
    /// Roots of the full subtrees from left to right, one per bit of `size`.
    peaks: Vec<Hash>,
}

impl Frontier {
    /// How many leaves the tree has.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Appends a leaf.
    pub fn push(&mut self, leaf: Hash) {
        let mut merged = leaf;
        for _ in 0..self.size.trailing_ones() {
            if let Some(left) = self.peaks.pop() {
                merged = node_hash(&left, &merged);
            }
        }
        self.peaks.push(merged);
        self.size += 1;
    }

    /// The root.
    pub fn root(&self) -> Hash {
        let joined = self
            .peaks
            .iter()
            .rev()
            .copied()
            .reduce(|right, left| node_hash(&left, &right));
        joined.unwrap_or_else(|| Hash::of(b""))
    }
}

/// The largest power of two that is smaller than `size`, which is at least 2.
fn split(size: usize) -> usize {
    (size / 2 + size % 2).next_power_of_two()
}

/// The proof that the leaf at `index` is in the tree of these leaves, from its
/// sibling upwards; `None` if there is no such leaf.
pub fn inclusion_proof(leaves: &[Hash], index: usize) -> Option<Vec<Hash>> {
    if index >= leaves.len() {
        return None;
    }
    let mut proof = Vec::new();
    let (mut part, mut index) = (leaves, index);
    while part.len() > 1 {
        let (left, right) = part.split_at(split(part.len()));
        if index < left.len() {
            proof.push(root(right));
            part = left;
        } else {
            proof.push(root(left));
            index -= left.len();
            part = right;
        }
    }
    proof.reverse();
    Some(proof)
}

/// Verifies that `leaf` is at `index` of the tree of `size` leaves with `root`.
///
/// # Errors
/// When it is not, or the proof is not exactly the proof of it.
pub fn verify_inclusion(
    leaf: &Hash,
    index: u64,
    size: u64,
    proof: &[Hash],
    root: &Hash,
) -> Result<(), ProofError> {
    if index >= size {
        return Err(ProofError::Range);
    }
    let (mut node, mut last) = (index, size - 1);
    let mut found = *leaf;
    for hash in proof {
        if last == 0 {
            return Err(ProofError::Length);
        }
        if node & 1 == 1 || node == last {
            found = node_hash(hash, &found);
            while node & 1 == 0 && node != 0 {
                node >>= 1;
                last >>= 1;
            }
        } else {
            found = node_hash(&found, hash);
        }
        node >>= 1;
        last >>= 1;
    }
    if last != 0 {
        return Err(ProofError::Length);
    }
    if found == *root {
        Ok(())
    } else {
        Err(ProofError::Root)
    }
}

/// The proof that the tree of the first `old_size` leaves is the beginning of the
/// tree of all; `None` if there are not so many. It is empty for equal sizes and
/// for an empty beginning.
pub fn consistency_proof(leaves: &[Hash], old_size: usize) -> Option<Vec<Hash>> {
    if old_size > leaves.len() {
        return None;
    }
    if old_size == 0 || old_size == leaves.len() {
        return Some(Vec::new());
    }
    let mut proof = Vec::new();
    let (mut part, mut old) = (leaves, old_size);
    // Whether the old part is the whole of a subtree that the old root shows.
    let mut is_shown = true;
    while old != part.len() {
        let (left, right) = part.split_at(split(part.len()));
        if old <= left.len() {
            proof.push(root(right));
            part = left;
        } else {
            proof.push(root(left));
            old -= left.len();
            part = right;
            is_shown = false;
        }
    }
    if !is_shown {
        proof.push(root(part));
    }
    proof.reverse();
    Some(proof)
}

/// Verifies that the tree of `old_size` leaves with `old_root` is the beginning of
/// the tree of `new_size` leaves with `new_root`.
///
/// # Errors
/// When it is not, or the proof is not exactly the proof of it.
pub fn verify_consistency(
    old_size: u64,
    old_root: &Hash,
    new_size: u64,
    new_root: &Hash,
    proof: &[Hash],
) -> Result<(), ProofError> {
    if old_size > new_size {
        return Err(ProofError::Range);
    }
    if old_size == 0 || old_size == new_size {
        let expected = if old_size == 0 {
            Hash::of(b"")
        } else {
            *new_root
        };
        return match (proof.is_empty(), *old_root == expected) {
            (false, _) => Err(ProofError::Length),
            (true, false) => Err(ProofError::Root),
            (true, true) => Ok(()),
        };
    }
    let mut hashes = proof.iter();
    let (mut node, mut last) = (old_size - 1, new_size - 1);
    while node & 1 == 1 {
        node >>= 1;
        last >>= 1;
    }
    // A beginning whose size is a power of two is a subtree: its root is the seed.
    let seed = if old_size.is_power_of_two() {
        Some(old_root)
    } else {
        hashes.next()
    };
    let seed = *seed.ok_or(ProofError::Length)?;
    let (mut old, mut new) = (seed, seed);
    for hash in hashes {
        if last == 0 {
            return Err(ProofError::Length);
        }
        if node & 1 == 1 || node == last {
            old = node_hash(hash, &old);
            new = node_hash(hash, &new);
            while node & 1 == 0 && node != 0 {
                node >>= 1;
                last >>= 1;
            }
        } else {
            new = node_hash(&new, hash);
        }
        node >>= 1;
        last >>= 1;
    }
    if last != 0 {
        return Err(ProofError::Length);
    }
    if old == *old_root && new == *new_root {
        Ok(())
    } else {
        Err(ProofError::Root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The leaves and roots that implementations of RFC 6962 share as test vectors.
    const LEAVES: [&str; 8] = [
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    ];
    const ROOTS: [&str; 8] = [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];

    fn leaves(count: usize) -> Vec<Hash> {
        (0..count)
            .map(|index| leaf_hash(&index.to_le_bytes()))
            .collect()
    }

    /// The definition of RFC 6962, section 2.1, word by word.
    fn defined_root(leaves: &[Hash]) -> Hash {
        match leaves {
            [] => Hash::of(b""),
            [leaf] => *leaf,
            _ => {
                let mut k = 1;
                while k * 2 < leaves.len() {
                    k *= 2;
                }
                node_hash(&defined_root(&leaves[..k]), &defined_root(&leaves[k..]))
            }
        }
    }

    #[test]
    fn roots_are_the_published_ones() {
        let hashes: Vec<Hash> = LEAVES
            .iter()
            .map(|leaf| leaf_hash(&hex::decode(leaf).unwrap()))
            .collect();
        for size in 1..=8 {
            assert_eq!(root(&hashes[..size]).to_string(), ROOTS[size - 1]);
        }
        assert_eq!(root(&[]), Hash::of(b""));
    }

    #[test]
    fn the_frontier_gives_the_defined_root_at_every_size() {
        let leaves = leaves(70);
        let mut frontier = Frontier::default();
        for size in 0..=70 {
            assert_eq!(frontier.root(), defined_root(&leaves[..size]));
            assert_eq!(frontier.size(), size as u64);
            if size < 70 {
                frontier.push(leaves[size]);
            }
        }
    }

    #[test]
    fn every_inclusion_proof_verifies_at_its_own_place_only() {
        let leaves = leaves(20);
        for size in 1..=20_usize {
            let root = root(&leaves[..size]);
            for index in 0..size {
                let proof = inclusion_proof(&leaves[..size], index).unwrap();
                let verify = |leaf: &Hash, at: usize, of: usize, proof: &[Hash]| {
                    verify_inclusion(leaf, at as u64, of as u64, proof, &root)
                };
                assert_eq!(verify(&leaves[index], index, size, &proof), Ok(()));
                for other in 0..size {
                    if other != index {
                        assert!(verify(&leaves[index], other, size, &proof).is_err());
                        assert!(verify(&leaves[other], index, size, &proof).is_err());
                    }
                }
                assert_eq!(
                    verify(&leaves[index], size, size, &proof),
                    Err(ProofError::Range)
                );
                let longer = [&proof[..], &[leaves[0]]].concat();
                assert!(verify(&leaves[index], index, size, &longer).is_err());
                for at in 0..proof.len() {
                    let mut shorter = proof.clone();
                    shorter.remove(at);
                    assert!(verify(&leaves[index], index, size, &shorter).is_err());
                    let mut changed = proof.clone();
                    changed[at] = leaf_hash(b"other");
                    assert_eq!(
                        verify(&leaves[index], index, size, &changed),
                        Err(ProofError::Root)
                    );
                }
            }
            assert_eq!(inclusion_proof(&leaves[..size], size), None);
        }
    }

    #[test]
    fn every_consistency_proof_verifies_between_its_own_sizes_only() {
        let leaves = leaves(20);
        for new_size in 0..=20_usize {
            let new_root = root(&leaves[..new_size]);
            for old_size in 0..=new_size {
                let old_root = root(&leaves[..old_size]);
                let proof = consistency_proof(&leaves[..new_size], old_size).unwrap();
                let verify = |old: usize, old_root: &Hash, proof: &[Hash]| {
                    verify_consistency(old as u64, old_root, new_size as u64, &new_root, proof)
                };
                assert_eq!(verify(old_size, &old_root, &proof), Ok(()));
                let other_root = leaf_hash(b"other");
                assert!(verify(old_size, &other_root, &proof).is_err());
                let longer = [&proof[..], &[leaves[0]]].concat();
                assert!(verify(old_size, &old_root, &longer).is_err());
                for at in 0..proof.len() {
                    let mut shorter = proof.clone();
                    shorter.remove(at);
                    assert!(verify(old_size, &old_root, &shorter).is_err());
                    let mut changed = proof.clone();
                    changed[at] = other_root;
                    assert!(verify(old_size, &old_root, &changed).is_err());
                }
                for other in 0..=new_size {
                    if other != old_size {
                        assert!(
                            verify(other, &old_root, &proof).is_err(),
                            "{other} {old_size}"
                        );
                    }
                }
            }
            assert_eq!(consistency_proof(&leaves[..new_size], new_size + 1), None);
        }
    }

    #[test]
    fn a_node_never_passes_as_a_leaf() {
        let leaves = leaves(2);
        let data = [leaves[0].as_bytes().as_slice(), leaves[1].as_bytes()].concat();
        assert_ne!(leaf_hash(&data), root(&leaves));
    }
}
