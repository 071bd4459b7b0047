//! Quadratic programs with a diagonal cost, solved by clarabel.

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettingsBuilder, DefaultSolver, IPSolver, NonnegativeConeT, SolverStatus};

/// `sum of (column, coefficient) <= bound`.
#[derive(Clone, Debug)]
pub struct Limit {
    /// Columns with their coefficients.
    pub coefficients: Vec<(usize, f64)>,
    /// The bound.
    pub bound: f64,
}

/// A minimum and the multiplier of each limit there.
#[derive(Debug)]
pub struct Minimum {
    /// The place.
    pub x: Vec<f64>,
    /// Of each limit.
    pub multipliers: Vec<f64>,
}

/// Minimises `sum of (curvature / 2) x^2 + slope x` under `limits`; `None` where the solver finds no
/// optimum.
pub fn minimise(curvature: &[f64], slope: &[f64], limits: &[Limit]) -> Option<Minimum> {
    let columns = curvature.len();
    let all: Vec<usize> = (0..columns).collect();
    let starts: Vec<usize> = (0..=columns).collect();
    let cost = CscMatrix::new(columns, columns, starts, all, curvature.to_vec());
    let mut entries: Vec<Vec<(usize, f64)>> = vec![Vec::new(); columns];
    for (row, limit) in limits.iter().enumerate() {
        for &(column, coefficient) in &limit.coefficients {
            entries[column].push((row, coefficient));
        }
    }
    let (mut starts, mut rows, mut values) = (vec![0], Vec::new(), Vec::new());
    for column in &entries {
        for &(row, value) in column {
            rows.push(row);
            values.push(value);
        }
        starts.push(rows.len());
    }
    let matrix = CscMatrix::new(limits.len(), columns, starts, rows, values);
    let bounds: Vec<f64> = limits.iter().map(|limit| limit.bound).collect();
    let settings = DefaultSettingsBuilder::default()
        .verbose(false)
        .tol_gap_abs(1e-10)
        .tol_gap_rel(1e-10)
        .tol_feas(1e-10)
        .build()
        .ok()?;
    let mut solver =
        DefaultSolver::new(&cost, slope, &matrix, &bounds, &[NonnegativeConeT(limits.len())], settings)
            .ok()?;
    solver.solve();
    let solution = solver.solution;
    matches!(solution.status, SolverStatus::Solved | SolverStatus::AlmostSolved)
        .then_some(Minimum { x: solution.x, multipliers: solution.z })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_point_of_a_half_plane_is_found_with_its_multiplier() {
        // The point of x + y <= 1 nearest to (1, 1).
        let limits = [Limit { coefficients: vec![(0, 1.0), (1, 1.0)], bound: 1.0 }];
        let found = minimise(&[1.0, 1.0], &[-1.0, -1.0], &limits).expect("there is an optimum");
        assert!(found.x.iter().all(|x| (x - 0.5).abs() < 1e-8), "{:?}", found.x);
        assert!((found.multipliers[0] - 0.5).abs() < 1e-8, "{:?}", found.multipliers);
    }

    #[test]
    fn limits_that_exclude_each_other_have_no_minimum() {
        let limits = [
            Limit { coefficients: vec![(0, 1.0)], bound: 0.0 },
            Limit { coefficients: vec![(0, -1.0)], bound: -1.0 },
        ];
        assert!(minimise(&[1.0], &[0.0], &limits).is_none());
    }
}
