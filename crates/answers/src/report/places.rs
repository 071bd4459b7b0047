//! Where the nodes of a machine stand in a picture.
//!
//! Places come from the graph alone, so a card of any shape can be drawn: the NIC stands left,
//! every node one column right of the node that the shortest way reaches it from, and a link that
//! the shortest ways do not need joins nodes that have their places already.

use crate::system::{LinkAnswer, MachineAnswer, NodeAnswer};
use std::collections::VecDeque;

/// A node of the picture.
#[derive(Debug)]
pub struct PictureNode {
    /// Its name, then a few words about it a line.
    pub lines: Vec<String>,
    /// Columns right of the NIC.
    pub column: usize,
    /// Rows below the top.
    pub row: usize,
}

/// A link of the picture.
#[derive(Debug)]
pub struct Edge<'a> {
    /// The link.
    pub link: &'a LinkAnswer,
    /// The node on the left, by position.
    pub from: usize,
    /// The node on the right, by position.
    pub to: usize,
    /// Whether the shortest ways need it; others join nodes that have their places already.
    pub drawn: bool,
}

/// A machine with places for its nodes.
#[derive(Debug)]
pub struct Picture<'a> {
    /// The nodes, the NIC first.
    pub nodes: Vec<PictureNode>,
    /// The links.
    pub edges: Vec<Edge<'a>>,
    /// Rows in all.
    pub rows: usize,
}

impl Picture<'_> {
    /// How many links leave the bottom of the left node before this one; absent for a link that runs
    /// straight to a node in the same row. Those that reach lower start further left, so that no two
    /// cross.
    pub fn branch(&self, edge: &Edge<'_>) -> Option<usize> {
        let row = |edge: &Edge<'_>| self.nodes[edge.to].row;
        let start = self.nodes[edge.from].row;
        let same = |other: &&Edge<'_>| other.drawn && other.from == edge.from && row(other) > start;
        (row(edge) > start)
            .then(|| self.edges.iter().filter(same).filter(|other| row(other) < row(edge)).count())
    }
}

/// Finds a place for every node of a machine.
pub fn picture(machine: &MachineAnswer) -> Picture<'_> {
    let names: Vec<&str> = machine.nodes.iter().map(|node| node.name.as_str()).collect();
    let index = |name: &str| names.iter().position(|own| *own == name);
    let lines = |node: &NodeAnswer| [std::slice::from_ref(&node.name), &node.about].concat();
    let mut nodes: Vec<PictureNode> =
        machine.nodes.iter().map(|node| PictureNode { lines: lines(node), column: 0, row: 0 }).collect();
    let mut edges: Vec<Edge<'_>> = Vec::new();
    let mut reached = vec![false; nodes.len()];
    let mut used = vec![false; machine.links.len()];
    let mut waiting = VecDeque::from([0]);
    reached[0] = true;
    while let Some(node) = waiting.pop_front() {
        for (position, link) in
            machine.links.iter().enumerate().filter(|(p, _)| !used[*p]).collect::<Vec<_>>()
        {
            let (Some(a), Some(b)) = (index(&link.from), index(&link.to)) else { continue };
            let other = match node {
                _ if a == node => b,
                _ if b == node => a,
                _ => continue,
            };
            used[position] = true;
            edges.push(Edge { link, from: node, to: other, drawn: !reached[other] });
            if !reached[other] {
                reached[other] = true;
                nodes[other].column = nodes[node].column + 1;
                waiting.push_back(other);
            }
        }
    }
    let rows = place(0, 0, &mut nodes, &edges);
    Picture { nodes, edges, rows }
}

/// Puts a node at `row` and what hangs on it into the rows from there; returns the rows it takes.
fn place(node: usize, row: usize, nodes: &mut [PictureNode], edges: &[Edge<'_>]) -> usize {
    nodes[node].row = row;
    let mut taken = 0;
    for edge in edges.iter().filter(|edge| edge.drawn && edge.from == node) {
        taken += place(edge.to, row + taken, nodes, edges);
    }
    taken.max(1)
}
