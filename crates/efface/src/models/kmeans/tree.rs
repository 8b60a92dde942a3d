//! DC-k-means: divide and conquer, so that a forget recomputes one path.
//!
//! The rows are dealt at random to the w^h leaves of a tree of height h and width w; every leaf is
//! clustered by itself, every inner node clusters the centres of its children, each with the mass
//! of its cluster (the authors' code counts each as one point), and the centres at the root are the
//! model. Guarantee: exact; a row touches its leaf and the nodes above it, and these are computed
//! anew from the rows of the leaf. Cost: O(k·d·T·(n/w^h + h·w·k)) for a row, reading the leaf only.
//! When it fails: with few rows a leaf its centres are a rough summary, and the loss is above that
//! of k-means on all rows; a leaf with fewer than k distinct points hands all of them on. Ginart,
//! Guan, Valiant and Zou 2019, "Making AI forget you", section 4.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::points::{ClusterPoints, PointSource, nearest};
use super::trace::{IterationRules, LloydTrace, RunFault};
use super::{KMeans, too_few};
use crate::error::Result;
use crate::random::{DrawPurpose, random_word};
use crate::rows::{RowId, RowStore};

/// The centres of one node and the mass of each.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct TreeNode {
    centers: Vec<f64>,
    masses: Vec<f64>,
}

/// The tree with the rows of its leaves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ClusterTree {
    /// The ids in each leaf, ascending.
    leaves: Vec<Vec<RowId>>,
    /// The nodes of each level, leaves first, the root alone in the last.
    levels: Vec<Vec<TreeNode>>,
}

impl ClusterTree {
    pub(super) fn new(recipe: &KMeans, rows: &dyn RowStore, ids: &[RowId]) -> Result<Self> {
        let (height, width) = recipe.shape();
        let sizes: Vec<usize> = (0..=height)
            .rev()
            .map(|level| width.pow(level as u32))
            .collect();
        let mut leaves = vec![Vec::new(); sizes[0]];
        for &id in ids {
            leaves[leaf(recipe.seed, id, sizes[0])].push(id);
        }
        leaves.iter_mut().for_each(|leaf| leaf.sort_unstable());
        let levels = sizes
            .iter()
            .map(|&size| vec![TreeNode::default(); size])
            .collect();
        let mut tree = Self { leaves, levels };
        tree.compute(recipe, rows, (0..sizes[0]).collect())?;
        Ok(tree)
    }

    /// The tree without some rows, and how many rows that took to read.
    pub(super) fn without(
        &self,
        recipe: &KMeans,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<(Self, usize)> {
        let mut tree = self.clone();
        let mut touched = BTreeSet::new();
        for id in gone {
            let at = leaf(recipe.seed, *id, tree.leaves.len());
            tree.leaves[at].retain(|other| other != id);
            touched.insert(at);
        }
        let read = touched.iter().map(|&at| tree.leaves[at].len()).sum();
        if !touched.is_empty() {
            tree.compute(recipe, rows, touched)?;
        }
        Ok((tree, read))
    }

    /// Computes the named leaves and every node above them.
    fn compute(
        &mut self,
        recipe: &KMeans,
        rows: &dyn RowStore,
        mut touched: BTreeSet<usize>,
    ) -> Result<()> {
        let (height, width) = recipe.shape();
        for level in 0..=height {
            for &at in &touched {
                let points = if level == 0 {
                    ClusterPoints::read(rows, &self.leaves[at])?
                } else {
                    let mut points = ClusterPoints::new(rows.width());
                    for child in at * width..(at + 1) * width {
                        let TreeNode { centers, masses } = &self.levels[level - 1][child];
                        for (cluster, mass) in masses.iter().enumerate() {
                            let center =
                                &centers[cluster * points.width..(cluster + 1) * points.width];
                            let id = (child * recipe.k + cluster) as u64;
                            points.push(id, center, *mass);
                        }
                    }
                    points
                };
                let seed = random_word(recipe.seed, DrawPurpose::Node, level as u64, at as u64);
                self.levels[level][at] = solve(recipe, &points, seed, level == height)?;
            }
            touched = touched.into_iter().map(|at| at / width).collect();
        }
        Ok(())
    }

    pub(super) fn centers(&self) -> &[f64] {
        self.levels
            .last()
            .and_then(|level| level.first())
            .map_or(&[], |root| &root.centers)
    }

    pub(super) fn bytes(&self) -> usize {
        let nodes = self
            .levels
            .iter()
            .flatten()
            .map(|node| (node.centers.len() + node.masses.len()) * 8);
        nodes.sum::<usize>() + self.leaves.iter().map(|leaf| leaf.len() * 8).sum::<usize>()
    }

    /// Whether the parts of a stored tree fit together.
    pub(super) fn is_sound(&self, recipe: &KMeans, width: usize, rows: usize) -> bool {
        let (height, branches) = recipe.shape();
        let sized = |(level, nodes): (usize, &Vec<TreeNode>)| {
            nodes.len() == branches.pow((height - level) as u32)
                && nodes.iter().all(|node| {
                    node.masses.len() <= recipe.k
                        && node.centers.len() == node.masses.len() * width
                        && node
                            .centers
                            .iter()
                            .chain(&node.masses)
                            .all(|x| x.is_finite())
                })
        };
        self.levels.len() == height + 1
            && self.levels.iter().enumerate().all(sized)
            && self.levels[0].len() == self.leaves.len()
            && self.leaves.iter().map(Vec::len).sum::<usize>() == rows
            && self.centers().len() == recipe.k * width
    }
}

fn leaf(seed: u64, id: RowId, leaves: usize) -> usize {
    (random_word(seed, DrawPurpose::Leaf, id.0, 0) % leaves as u64) as usize
}

/// Clusters the points of one node. Below the root, points too few to cluster are handed on as they
/// are.
fn solve(recipe: &KMeans, points: &ClusterPoints, seed: u64, root: bool) -> Result<TreeNode> {
    let rules = IterationRules {
        k: recipe.k,
        iterations: recipe.iterations,
        seed,
        epsilon: 0.0,
        gamma: 0.0,
    };
    match LloydTrace::new(PointSource::Held(points), &rules) {
        Ok(trace) => Ok(trace
            .result()
            .map_or_else(TreeNode::default, |stage| TreeNode {
                centers: stage.centers.clone(),
                masses: (0..recipe.k).map(|cluster| stage.mass(cluster)).collect(),
            })),
        // The run was asked to stop, so its result is not used.
        Err(_) if points.is_stopped() => Ok(TreeNode::default()),
        Err(RunFault::Unread(error)) => Err(error),
        Err(RunFault::TooFew(distinct)) if root => Err(too_few(recipe.k, distinct)),
        Err(RunFault::TooFew(_)) => {
            let start = PointSource::Held(points).plus_plus(recipe.k, seed)?;
            let centers = start.centers;
            let mut masses = vec![0.0; start.ids.len()];
            for at in (0..points.len()).filter(|&at| points.weight(at) > 0.0) {
                masses[nearest(&centers, points.point(at)).0] += points.weight(at);
            }
            Ok(TreeNode { centers, masses })
        }
    }
}
